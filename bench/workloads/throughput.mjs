// @ts-check
/**
 * Throughput without contention: sequential, and 64 and 1000 in flight, each on its own resource.
 */

import { openWorkers, record, recordProblems, takeTurns } from "../bench.mjs";
import { keysLeft } from "../leftovers.mjs";
import { roundsOff } from "../report/statistics.mjs";

/** @import { Bench } from "../bench.mjs" */
/** @import { CyclesResult } from "../types.ts" */

const levels = [
  { workload: "sequential", inFlight: 1, fullMs: 1_500, quickMs: 150 },
  { workload: "inflight", inFlight: 64, fullMs: 1_500, quickMs: 150 },
  { workload: "inflight", inFlight: 1_000, fullMs: 2_000, quickMs: 300 },
];

const warmCycles = 3_000;

/**
 * Runs both workloads in the same processes. @param {Bench} bench @param {readonly string[]} names
 */
export async function throughput(bench, names) {
  const { rounds } = bench.options;
  const chosen = levels.filter(({ workload }) => names.includes(workload));
  for (const nodes of bench.options.nodes) {
    const ports = await bench.ports(nodes === 1 ? "one" : "five");
    const contenders = bench.contenders(nodes);
    bench.log(`${names.join(", ")}, N = ${nodes}: ${contenders.length} contenders`);
    const { workload = "", inFlight } = chosen[0] ?? {};
    const offRounds = () => {
      const off = chosen.flatMap(({ workload, inFlight }) => {
        const { values } = bench.seriesOf(workload, String(inFlight), nodes, "floor");
        return roundsOff(values["perSecond"] ?? [], rounds);
      });
      return [...new Set(off)];
    };
    const repeated = await takeTurns(bench, {
      contenders,
      rounds,
      offRounds,
      seriesOf: (contender) => bench.seriesOf(workload, String(inFlight), nodes, contender),
      async open(contender) {
        const settings = {
          ports,
          ttlMs: 30_000,
          waitMs: 0,
          pollMs: undefined,
          renewEveryMs: 10_000,
          countCommands: false,
        };
        return await openWorkers(contender, 1, settings);
      },
      async warmUp(contender, workers) {
        const durationMs = bench.timeMs(1_000, 250);
        const [worker] = workers;
        const needed = warmCycles * Math.min(1, bench.options.scale);
        // A lone call may use another code path than calls in batches.
        for (const inFlight of names.includes("sequential") ? [64, 1] : [64]) {
          const input = { prefix: `${contender}:warm`, inFlight, durationMs };
          // Until enough cycles have run, because code that ran rarely is not compiled yet; with a
          // limit.
          for (let turn = 0, cycles = 0; turn < 5 && cycles < needed; turn += 1) {
            /** @type {CyclesResult | undefined} */
            const result = await worker?.ask("cycles", input, 2 * durationMs + 10_000);
            cycles += result?.cycles ?? 0;
          }
        }
      },
      async turn(contender, workers, round) {
        for (const { workload, inFlight, fullMs, quickMs } of chosen) {
          const series = bench.seriesOf(workload, String(inFlight), nodes, contender);
          const prefix = `${contender}:${workload}`;
          const durationMs = bench.timeMs(fullMs, quickMs);
          const input = { prefix, inFlight, durationMs };
          const [worker] = workers;
          if (worker === undefined) throw new Error("no process");
          // After 1000 in flight in the round before, this code path must be compiled again.
          if (inFlight === 1) await worker.ask("cycles", input, 2 * durationMs + 10_000);
          /** @type {CyclesResult} */
          const result = await worker.ask("cycles", input, 2 * durationMs + 10_000);
          const { cycles, elapsedMs, cpuUs, failures, unfinished } = result;
          record(series, round, {
            perSecond: (cycles / elapsedMs) * 1_000,
            cpuUs: cycles === 0 ? undefined : cpuUs / cycles,
            p50Ms: result.p50Ms,
            p99Ms: result.p99Ms,
          });
          recordProblems(series, failures);
          if (unfinished > 0) throw new Error(`${unfinished} cycles did not end`);
          const left = await keysLeft(ports, prefix);
          if (left > 0) recordProblems(series, { "keys left behind": left });
        }
      },
    });
    if (repeated > 0) {
      bench.note(
        `${names.join(", ")}, N = ${nodes}: rounds measured again because the floor was off: ` +
          `${repeated}; rounds in which it is still off: ${offRounds().length}`,
      );
    }
  }
}
