import { histogram, measure, quantile, type Measured } from "../bench/measure.ts";
import { interruptible } from "../interruptible.ts";
import { Failure } from "../failure.ts";
import type { Output } from "../output.ts";
import { flagDuration, flagInteger, type AddCommand, type Session } from "../session.ts";
import { bar, shortLatency } from "../words.ts";

const examples = `
Examples:
  holdfast bench --store redis://localhost
  holdfast bench --duration 10s --in-flight 256 --json

It acquires and releases resources of its own (holdfast-bench:…), first one after the other, then
many at a time, and leaves nothing behind. Run it from where your program runs.`;

interface BenchFlags {
  readonly duration: string;
  readonly inFlight: string;
  readonly fence: boolean;
}

export const addBench: AddCommand = (program, host) => {
  program
    .command("bench")
    .summary("measure how fast the store grants locks")
    .description("Measure how fast the store grants and frees locks, from here.")
    .option("-d, --duration <duration>", "how long each of the two parts takes", "3s")
    .option("-n, --in-flight <number>", "how many at a time in the second part", "64")
    .option("--no-fence", "without fences, on Redis")
    .addHelpText("after", examples)
    .action(host.act((session, flags: BenchFlags) => bench(session, flags)));
};

async function bench(session: Session, flags: BenchFlags): Promise<"ok"> {
  const durationMs = flagDuration("--duration", flags.duration, 100, 600_000);
  const inFlight = flagInteger("--in-flight", flags.inFlight, 1, 10_000);
  const { output } = session;
  return await session.using<"ok">(
    async ({ locks, description }) => {
      // The first lock is not measured: it includes connecting, loading scripts and the admission
      // of nodes.
      await (await locks.acquire("holdfast-bench:first")).release();
      const parts = inFlight === 1 ? [1] : [1, inFlight];
      const outcome = await interruptible(async (signal) => {
        const measured: Measured[] = [];
        for (const [index, many] of parts.entries()) {
          const progress = progressBar(`${many} in flight`, index, parts.length);
          if (signal.aborted) break;
          measured.push(await measure(locks, many, durationMs, signal, progress));
        }
        clearProgress();
        return measured;
      });
      const measured = "result" in outcome ? outcome.result : [];
      if (measured.every(({ cycles }) => cycles === 0)) {
        const why = measured[0]?.firstFailure ?? "it was interrupted";
        throw new Failure("unavailable", `nothing was measured: ${why}`);
      }
      if (output.json) output.document({ store: description, parts: measured.map(partDocument) });
      else await show(description, measured, output);
      return "ok";
    },
    { fencing: flags.fence },
  );
}

function partDocument({ latenciesMs, ...part }: Measured): object {
  return { ...part, perSecond: part.cycles / part.seconds, latencyMs: quantiles(latenciesMs) };
}

function quantiles(sorted: readonly number[]): Readonly<Record<string, number>> {
  const at = (share: number): number => Number(quantile(sorted, share).toFixed(4));
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1) };
}

async function show(store: string, parts: readonly Measured[], output: Output): Promise<void> {
  const { renderTable } = await import("../table.ts");
  const { colors } = output;
  for (const part of parts) showHistogram(part, output);
  const titles = ["IN FLIGHT", "PER SECOND", "P50", "P90", "P99", "P99.9", "MAX", "FAILED"];
  const rows = parts.map(({ inFlight, cycles, seconds, latenciesMs, failures }) => {
    const figures = Object.values(quantiles(latenciesMs)).map(shortLatency);
    return [String(inFlight), String(Math.round(cycles / seconds)), ...figures, String(failures)];
  });
  const columns = titles.map((title) => ({ title, align: "right" as const }));
  // The table comes last, so that a small terminal shows it.
  output.line(`${colors.bold(store)}: acquire and release`);
  output.line();
  output.line(renderTable(columns, rows, { colors, columns: output.lineColumns }));
}

function showHistogram({ inFlight, latenciesMs }: Measured, output: Output): void {
  const { colors } = output;
  const buckets = histogram(latenciesMs);
  const most = Math.max(1, ...buckets.map(({ count }) => count));
  const width = Math.max(10, Math.min(60, output.columns - 36));
  output.line(colors.dim(`latency, ${inFlight} in flight`));
  for (const { fromMs, toMs, count } of buckets) {
    const range = `${shortLatency(fromMs).padStart(8)} – ${shortLatency(toMs).padStart(8)}`;
    const share = ((100 * count) / latenciesMs.length).toFixed(1).padStart(5);
    output.line(`${range}  ${colors.cyan(bar(count / most, width))} ${share} %`);
  }
  output.line();
}

/**
 * Returns a function that draws progress on stderr, apart from results. Without a terminal it does
 * nothing.
 */
function progressBar(what: string, index: number, count: number): (share: number) => void {
  if (!process.stderr.isTTY) return () => undefined;
  return (share) => {
    const all = (index + Math.min(1, share)) / count;
    const percent = `${Math.round(all * 100)}`.padStart(3);
    process.stderr.write(`\r\u001B[K${percent} %  ${bar(all, 30)}  ${what}`);
  };
}

function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write("\r\u001B[K");
}
