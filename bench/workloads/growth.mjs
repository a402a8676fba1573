// @ts-check
/** Growth of the cost: from 10 to 100,000 held leases, and from 1 to 1,000 waiters. */

import { endWorkers, openWorkers, record, recordCut, recordProblems } from "../bench.mjs";
import { contend } from "./contend.mjs";

/** @import { Bench } from "../bench.mjs" */
/** @import { Worker } from "../crew.mjs" */
/** @import { CyclesResult } from "../types.ts" */

const contenders = ["floor", "fenced", "unfenced"];
const renewEveryMs = 10_000;

/** @param {Bench} bench */
export async function growth(bench) {
  await growthOfLeases(bench);
  await growthOfWaiters(bench);
}

/** @param {Bench} bench */
async function growthOfLeases(bench) {
  const { quick, scale } = bench.options;
  const most = quick || scale < 1 ? 1_000 : 100_000;
  const steps = [10, 100, 1_000, 10_000, 100_000].filter((count) => count <= most);
  const ports = await bench.ports("spare");
  for (const contender of bench.contenders(1, quick ? ["floor", "fenced"] : contenders)) {
    bench.log(`growth, N = 1: up to ${most} leases, ${contender}`);
    const settings = {
      ports,
      ttlMs: 30_000,
      waitMs: 0,
      pollMs: undefined,
      renewEveryMs,
      countCommands: false,
    };
    const workers = await openWorkers(contender, 1, settings, ["--expose-gc"]);
    try {
      for (const count of steps) await leasesStep(bench, contender, workers[0], count);
      await workers[0]?.ask("drop", undefined, 120_000);
    } catch (error) {
      recordCut(bench.seriesOf("growth", "leases", 1, contender), error);
    } finally {
      await endWorkers(workers);
    }
  }
  bench.note(`growth: leases have a TTL of 30 s and are renewed every ${renewEveryMs / 1_000} s`);
}

/**
 * @param {Bench} bench
 * @param {string} contender
 * @param {Worker | undefined} worker
 * @param {number} count
 */
async function leasesStep(bench, contender, worker, count) {
  if (worker === undefined) throw new Error("no process");
  const series = bench.seriesOf("growth", `${count} leases`, 1, contender);
  /** @type {{ heapEach: number, failures: Record<string, number> }} */
  const kept = await worker.ask("keep", { prefix: `${contender}:growth`, count }, 120_000);
  recordProblems(series, kept.failures);
  // One whole interval, so that each lease is renewed once.
  const idleMs = bench.options.quick ? renewEveryMs / 10 : renewEveryMs;
  /** @type {{ cpuUs: number }} */
  const { cpuUs } = await worker.ask("renewals", { durationMs: idleMs }, idleMs + 60_000);
  const durationMs = bench.timeMs(1_500, 300);
  const input = { prefix: `${contender}:cycle`, inFlight: 64, durationMs };
  /** @type {CyclesResult} */
  const cycles = await worker.ask("cycles", input, 2 * durationMs + 60_000);
  recordProblems(series, cycles.failures);
  record(series, 0, {
    heapBytes: kept.heapEach,
    renewalCpuUs: cpuUs / (count * (idleMs / renewEveryMs)),
    cycleCpuUs: cycles.cycles === 0 ? undefined : cycles.cpuUs / cycles.cycles,
    cyclesPerSecond: (cycles.cycles / cycles.elapsedMs) * 1_000,
  });
}

/** @param {Bench} bench */
async function growthOfWaiters(bench) {
  const steps = bench.options.quick ? [1, 10, 100] : [1, 10, 100, 1_000];
  const ports = await bench.ports("one");
  const pollMs = 5;
  for (const tasksEach of steps) {
    const durationMs = bench.timeMs(Math.max(2_000, 6 * tasksEach), 500);
    const among = bench.options.quick ? ["floor", "fenced"] : contenders;
    for (const contender of bench.contenders(1, among)) {
      if (bench.isLate("growth")) return;
      bench.log(`growth, N = 1: ${tasksEach} waiters, ${contender}`);
      const series = bench.seriesOf("growth", `${tasksEach} waiters`, 1, contender);
      const waitMs = durationMs + 15_000;
      const workers = await openWorkers(contender, 1, {
        ports,
        ttlMs: 5_000,
        waitMs,
        pollMs,
        renewEveryMs: 2_000,
        countCommands: true,
      });
      try {
        const shape = { tasksEach, thinkMs: 1 };
        const name = `${contender}:waiters`;
        const { values, overlaps, failures } = await contend(workers, name, shape, durationMs);
        record(series, 0, values);
        recordProblems(series, overlaps > 0 ? { ...failures, overlaps } : failures);
      } catch (error) {
        recordCut(series, error);
      } finally {
        await endWorkers(workers);
      }
    }
  }
  bench.note(`growth: 1 ms inside; raw polling tries again every ${pollMs} ms`);
}
