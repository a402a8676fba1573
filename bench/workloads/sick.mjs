// @ts-check
/** One node of five stopped, slow or killed: acquire + release, compared with all nodes healthy. */

import { setTimeout as sleep } from "node:timers/promises";
import {
  endWorkers,
  openWorkers,
  record,
  recordCut,
  recordProblems,
  shuffled,
  takeTurns,
} from "../bench.mjs";
import { startProxy } from "./proxy.mjs";

/** @import { Bench } from "../bench.mjs" */
/** @import { Worker } from "../crew.mjs" */
/** @import { CyclesResult } from "../types.ts" */

const inFlight = 4;
const slowMs = 100;
// Time in which a stopped node works off its input before it counts as healthy again.
const recoveryMs = 500;

/** @param {Bench} bench */
export async function sick(bench) {
  const [patient, ...others] = await bench.fleet("sick");
  if (patient === undefined) throw new Error("no server");
  const proxy = await startProxy(patient.port);
  const ports = [...others.map(({ port }) => port), proxy.port];
  const few = bench.options.quick ? ["floor", "fenced", "unfenced"] : undefined;
  const contenders = bench.contenders(5, few).filter((id) => id !== "limit");
  bench.log(`sick, N = 5: ${contenders.length} contenders`);
  const open = (/** @type {string} */ contender) => openWarm(bench, contender, ports);
  try {
    await takeTurns(bench, {
      contenders,
      rounds: bench.options.rounds,
      seriesOf: (contender) => bench.seriesOf("sick", "healthy", 5, contender),
      open,
      async turn(contender, [worker], round) {
        await measure(bench, contender, worker, { round, label: "healthy" });
        patient.pause();
        try {
          await measure(bench, contender, worker, { round, label: "stopped" });
        } finally {
          patient.resume();
          await sleep(recoveryMs);
        }
        await proxy.delay(slowMs);
        try {
          await measure(bench, contender, worker, { round, label: "slow" });
        } finally {
          await proxy.delay(0);
          await sleep(recoveryMs);
        }
      },
    });
    await killedForGood(bench, contenders, open, async () => {
      await patient.kill();
      await proxy.stop();
      await sleep(recoveryMs);
    });
  } finally {
    await proxy.stop();
  }
  bench.note(`sick: ${inFlight} in flight; slow is ${slowMs} ms later each way`);
}

/**
 * Measures a killed node, which stays dead: all contenders are opened and measured before, and
 * measured again after the kill.
 *
 * @param {Bench} bench
 * @param {readonly string[]} contenders
 * @param {(contender: string) => Promise<Worker[]>} open
 * @param {() => Promise<void>} kill
 */
async function killedForGood(bench, contenders, open, kill) {
  /** @type {Map<string, Worker[]>} */
  const crews = new Map();
  try {
    for (const contender of contenders) crews.set(contender, await open(contender));
    for (const label of ["healthy before", "killed"]) {
      if (label === "killed") await kill();
      for (const contender of shuffled(contenders)) {
        const [worker] = crews.get(contender) ?? [];
        try {
          await measure(bench, contender, worker, { round: 0, label });
        } catch (error) {
          recordCut(bench.seriesOf("sick", label, 5, contender), error);
        }
      }
    }
  } finally {
    for (const workers of crews.values()) await endWorkers(workers);
  }
}

/** @param {Bench} bench @param {string} contender @param {number[]} ports */
async function openWarm(bench, contender, ports) {
  const workers = await openWorkers(contender, 1, {
    ports,
    ttlMs: 10_000,
    waitMs: 0,
    pollMs: undefined,
    renewEveryMs: 3_000,
    countCommands: false,
  });
  const input = { prefix: `${contender}:warm`, inFlight, durationMs: bench.timeMs(500, 150) };
  await workers[0]?.ask("cycles", input, 20_000);
  return workers;
}

/**
 * Records the measured values. Throws if cycles did not end.
 *
 * @param {Bench} bench
 * @param {string} contender
 * @param {Worker | undefined} worker
 * @param {{ round: number, label: string }} place
 */
async function measure(bench, contender, worker, { round, label }) {
  if (worker === undefined) throw new Error("no process");
  const durationMs = bench.timeMs(2_000, 500);
  const series = bench.seriesOf("sick", label, 5, contender);
  const input = { prefix: `${contender}:${label}`, inFlight, durationMs };
  /** @type {CyclesResult} */
  const result = await worker.ask("cycles", input, 2 * durationMs + 10_000);
  const { cycles, elapsedMs, p50Ms, p99Ms, maxMs, failures, unfinished } = result;
  record(series, round, {
    perSecond: (cycles / elapsedMs) * 1_000,
    // If no cycle ended, the time waited is a lower limit.
    p50Ms: cycles === 0 ? maxMs : p50Ms,
    p99Ms: cycles === 0 || unfinished > 0 ? maxMs : p99Ms,
  });
  recordProblems(series, failures);
  if (unfinished === 0) return;
  recordProblems(series, { "cycles that did not end in time": unfinished });
  throw new Error(`${label}: ${unfinished} cycles did not end in time`);
}
