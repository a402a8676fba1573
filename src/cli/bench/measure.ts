import { randomBytes } from "node:crypto";
import type { Locks } from "../../core/locks.ts";

export interface Measured {
  readonly inFlight: number;
  readonly cycles: number;
  readonly failures: number;
  readonly seconds: number;
  /** One of each cycle of acquire and release, in ms, sorted. */
  readonly latenciesMs: readonly number[];
  readonly firstFailure: string | undefined;
}

/** Enough for quantiles to the thousandth, and a bound for memory. */
const samplesMax = 200_000;

/** Acquires and releases resources that nobody else uses, so many at a time, for a while. */
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
      // The embedded store answers without a turn of the event loop, and timers must run, too.
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

const stepsPerDoubling = 2;
const bucketsMax = 14;

/** Buckets that grow by the square root of two, from the fastest to the slowest that counts. */
export function histogram(sorted: readonly number[]): readonly Bucket[] {
  if (sorted.length === 0) return [];
  const boundOf = (step: number): number => 2 ** (step / stepsPerDoubling);
  const stepOf = (ms: number): number =>
    Math.floor(Math.log2(Math.max(ms, 1e-4)) * stepsPerDoubling);
  const counts = new Map<number, number>();
  for (const ms of sorted) counts.set(stepOf(ms), (counts.get(stepOf(ms)) ?? 0) + 1);
  const first = Math.min(...counts.keys());
  const last = Math.max(...counts.keys());
  const buckets: Bucket[] = [];
  for (let step = first; step <= last; step += 1) {
    buckets.push({ fromMs: boundOf(step), toMs: boundOf(step + 1), count: counts.get(step) ?? 0 });
  }
  if (buckets.length <= bucketsMax) return buckets;
  // A long tail is one bucket: it is told by its quantiles.
  const tail = buckets.splice(bucketsMax - 1);
  const [from, to] = [tail[0], tail.at(-1)];
  const count = tail.reduce((sum, bucket) => sum + bucket.count, 0);
  return [...buckets, { fromMs: from?.fromMs ?? 0, toMs: to?.toMs ?? 0, count }];
}
