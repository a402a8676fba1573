// @ts-check
/** Lets all processes of a contender compete for the same resource at the same time. */

import { machineMs } from "../tasks/failures.mjs";
import { judgeSections } from "./sections.mjs";

/** @import { Worker } from "../crew.mjs" */
/** @import { ContendResult } from "../types.ts" */

/**
 * @param {readonly Worker[]} workers
 * @param {string} resource
 * @param {{ tasksEach: number, thinkMs: number }} shape
 * @param {number} durationMs
 * @param {number} [counterPort]
 */
export async function contend(workers, resource, { tasksEach, thinkMs }, durationMs, counterPort) {
  const startAtMs = machineMs() + 50;
  const boundMs = durationMs + 12_000;
  /** @type {ContendResult[]} */
  const results = await Promise.all(
    workers.map((worker, n) => {
      const window = { startAtMs, durationMs, thinkMs, counterPort };
      const input = { ...window, resource, firstTask: n * tasksEach, tasks: tasksEach };
      return worker.ask("contend", input, boundMs);
    }),
  );
  const tasks = workers.length * tasksEach;
  /** @type {Record<string, number>} */
  const failures = {};
  for (const result of results) {
    for (const [kind, count] of Object.entries(result.failures)) {
      failures[kind] = (failures[kind] ?? 0) + count;
    }
  }
  return { ...judgeSections(results, { startAtMs, durationMs, tasks }), failures };
}
