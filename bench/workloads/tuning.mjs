// @ts-check
/**
 * Finds the pause of raw polling with which a resource changes hands most often, anew for every
 * case, so that no contender is compared with a badly chosen one. The peers use the same pause.
 * The number of sections alone is not enough: the longer the others pause, the more often the
 * releaser acquires again at once, which looks fast while the others starve.
 */

import { endWorkers, openWorkers } from "../bench.mjs";
import { contend } from "./contend.mjs";

/** @import { Bench } from "../bench.mjs" */

const candidatesMs = [1, 2, 5, 10, 20];
const ttlMs = 5_000;

/**
 * @param {Bench} bench
 * @param {{ ports: number[], among: readonly string[],
 *   shape: { processes: number, tasksEach: number, thinkMs: number } }} given
 */
export async function tunedPollMs(bench, { ports, among, shape }) {
  if (!among.includes("floor") || bench.options.quick) return 5;
  const durationMs = bench.timeMs(1_000, 200);
  const settings = (/** @type {number} */ pollMs) => ({
    ports,
    ttlMs,
    waitMs: durationMs + 15_000,
    pollMs,
    renewEveryMs: ttlMs / 3,
    countCommands: false,
  });
  let best = { pollMs: 5, passedOn: 0 };
  const workers = await openWorkers("floor", shape.processes, settings(best.pollMs));
  try {
    for (const pollMs of candidatesMs) {
      await Promise.all(workers.map((worker) => worker.ask("open", settings(pollMs), 30_000)));
      const { values } = await contend(workers, `tuning:${pollMs}`, shape, durationMs);
      const passedOn = values.passedOnPerSecond;
      if (passedOn > best.passedOn) best = { pollMs, passedOn };
    }
  } finally {
    await endWorkers(workers);
  }
  return best.pollMs;
}
