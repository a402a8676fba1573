import { randomBytes } from "node:crypto";
import type { Locks } from "../../core/locks.ts";

export interface Measured {
  readonly inFlight: number;
  readonly cycles: number;
  readonly failures: number;
  readonly seconds: number;
  /**
   * Sorted latencies in ms of the acquire + release cycles, or of a sample if there were too many.
   */
  readonly latenciesMs: readonly number[];
  readonly firstFailure: string | undefined;
}

/** Limit for samples: enough for the 99.9 % quantile. */
const samplesMax = 200_000;

/** Acquires and releases unused resources, `inFlight` at a time, for `durationMs`. */
export async function measure(
  locks: Locks,
  inFlight: number,
  durationMs: number,
  signal: AbortSignal,
  onProgress: (share: number) => void,
): Promise<Measured> {
  const run = randomBytes(6).toString("hex");
  const latenciesMs: number[] = [];
  const beganMs = performance.now();
  let [cycles, failures] = [0, 0];
  let firstFailure: string | undefined;
  const goesOn = (): boolean => !signal.aborted && performance.now() - beganMs < durationMs;
  const worker = async (index: number): Promise<void> => {
    const resource = `holdfast-bench:${run}:${index}`;
    while (goesOn()) {
      const startedMs = performance.now();
      try {
        const lease = await locks.acquire(resource, { wait: 0 });
        await lease.release();
        cycles += 1;
        const tookMs = performance.now() - startedMs;
        if (latenciesMs.length < samplesMax) latenciesMs.push(tookMs);
        else latenciesMs[Math.floor(Math.random() * samplesMax)] = tookMs;
      } catch (error) {
        failures += 1;
        firstFailure ??= error instanceof Error ? error.message : String(error);
        if (failures > 100 && cycles === 0) return;
      }
      // The embedded store replies without a turn of the event loop; yield so that timers run.
      if (cycles % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const timer = setInterval(() => onProgress((performance.now() - beganMs) / durationMs), 100);
  try {
    await Promise.all(Array.from({ length: inFlight }, (_, index) => worker(index)));
  } finally {
    clearInterval(timer);
    onProgress(1);
  }
  const seconds = (performance.now() - beganMs) / 1_000;
  latenciesMs.sort((a, b) => a - b);
  return { inFlight, cycles, failures, seconds, latenciesMs, firstFailure };
}

export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export interface Bucket {
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

const bucketsMax = 14;
/**
 * Ratios between the widths of successive buckets. The histogram uses the smallest ratio that needs
 * at most `bucketsMax` buckets.
 */
const growths = [Math.SQRT2, 2, 4, 16, 256];

/**
 * Returns buckets from the fastest to the slowest latency. Each bucket is wider than the one
 * before.
 */
export function histogram(sorted: readonly number[]): readonly Bucket[] {
  const [fastest, slowest] = [sorted[0], sorted.at(-1)];
  if (fastest === undefined || slowest === undefined) return [];
  const bucketed = growths.map((growth) => bucketsOf(sorted, growth));
  return bucketed.find((buckets) => buckets.length <= bucketsMax) ?? bucketed.at(-1) ?? [];
}

function bucketsOf(sorted: readonly number[], growth: number): readonly Bucket[] {
  const stepOf = (ms: number): number =>
    Math.floor(Math.log(Math.max(ms, 1e-4)) / Math.log(growth));
  const counts = new Map<number, number>();
  for (const ms of sorted) counts.set(stepOf(ms), (counts.get(stepOf(ms)) ?? 0) + 1);
  const [first, last] = [stepOf(sorted[0] ?? 0), stepOf(sorted.at(-1) ?? 0)];
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const step = first + index;
    return { fromMs: growth ** step, toMs: growth ** (step + 1), count: counts.get(step) ?? 0 };
  });
}
