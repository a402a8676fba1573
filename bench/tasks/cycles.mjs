// @ts-check
/** Cycles of acquire and release, with a number of them in flight, each on its own resource. */

import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../report/statistics.mjs";
import { cpuUs, Failures } from "./failures.mjs";

/** @import { Contender, CyclesInput, CyclesResult } from "../types.ts" */

const namesPerTask = 10;
const graceMs = 3_000;
const samplesMax = 100_000;

/**
 * @param {Contender} contender
 * @param {CyclesInput} input
 * @returns {Promise<CyclesResult>}
 */
export async function runCycles(contender, { prefix, inFlight, durationMs }) {
  const failures = new Failures();
  /** @type {number[]} */
  const latencies = [];
  const state = { cycles: 0, running: inFlight, isOver: false };
  const worker = async (/** @type {number} */ task) => {
    const names = Array.from({ length: namesPerTask }, (_, n) => `${prefix}:${task}:${n}`);
    for (let n = 0; !state.isOver; n += 1) {
      const beganMs = performance.now();
      try {
        const held = await contender.acquire(names[n % namesPerTask] ?? "");
        await contender.release(held);
        if (state.isOver) break;
        state.cycles += 1;
      } catch (error) {
        failures.add("cycle", error);
        // A library that refuses at once must not loop without a pause.
        await sleep(1);
      }
      if (latencies.length < samplesMax) latencies.push(performance.now() - beganMs);
    }
    state.running -= 1;
  };
  const workers = Promise.all(Array.from({ length: inFlight }, (_, task) => worker(task)));
  // Measures from the moment when every task has had a cycle, because at first all do the same at
  // once.
  const rampUntilMs = performance.now() + durationMs;
  while (state.cycles < inFlight && performance.now() < rampUntilMs) await sleep(5);
  latencies.length = 0;
  const cyclesBefore = state.cycles;
  const cpuBeforeUs = cpuUs();
  const beganMs = performance.now();
  await sleep(durationMs);
  state.isOver = true;
  const elapsedMs = performance.now() - beganMs;
  const usedUs = cpuUs() - cpuBeforeUs;
  const counted = state.cycles - cyclesBefore;
  const grace = new AbortController();
  await Promise.race([
    workers.then(() => grace.abort()),
    sleep(graceMs, undefined, { signal: grace.signal }).catch(() => undefined),
  ]);
  latencies.sort((a, b) => a - b);
  return {
    cycles: counted,
    elapsedMs,
    cpuUs: usedUs,
    failures: failures.counts,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    // A cycle that did not end took at least this long.
    maxMs: state.running > 0 ? elapsedMs + graceMs : (latencies.at(-1) ?? 0),
    unfinished: state.running,
  };
}
