// @ts-check
/** Judges the critical sections of all processes, on one clock. */

import { quantile } from "../report/statistics.mjs";

/** @import { ContendResult, Section } from "../types.ts" */

/**
 * @param {readonly ContendResult[]} results
 * @param {{ startAtMs: number, durationMs: number, tasks: number }} window
 */
export function judgeSections(results, { startAtMs, durationMs, tasks }) {
  const endMs = startAtMs + durationMs;
  const all = results.flatMap(({ sections }) => [...sections]).sort((a, b) => a[2] - b[2]);
  const inside = all.filter(([, , grantedMs]) => grantedMs <= endMs);
  const served = new Set(inside.map(([task]) => task));
  let overlaps = 0;
  let regrabs = 0;
  /** @type {number[]} */
  const handOvers = [];
  /** @type {Section | undefined} */
  let before;
  let latestEndMs = -Infinity;
  for (const section of all) {
    const [task, , grantedMs, releasingMs] = section;
    if (grantedMs < latestEndMs) overlaps += 1;
    latestEndMs = Math.max(latestEndMs, releasingMs);
    if (before !== undefined && grantedMs <= endMs) {
      handOvers.push(grantedMs - before[3]);
      if (before[0] === task) regrabs += 1;
    }
    before = section;
  }
  handOvers.sort((a, b) => a - b);
  // A task that still waits at the end has waited at least until then.
  const longestWaitMs = all.reduce(
    (longest, [, askedMs, grantedMs]) =>
      askedMs > endMs ? longest : Math.max(longest, Math.min(grantedMs, endMs) - askedMs),
    served.size < tasks || results.some(({ unfinished }) => unfinished > 0) ? durationMs : 0,
  );
  const commands = results.reduce((sum, result) => sum + result.commands, 0);
  const cpuUs = results.reduce((sum, result) => sum + result.cpuUs, 0);
  const counted = results.reduce((sum, result) => sum + result.overlapsCounted, 0);
  const unfinished = results.reduce((sum, result) => sum + result.unfinished, 0);
  const count = inside.length;
  return {
    overlaps: overlaps + counted,
    unfinished,
    values: {
      perSecond: (count / durationMs) * 1_000,
      passedOnPerSecond: ((handOvers.length - regrabs) / durationMs) * 1_000,
      handOverP50Ms: count < 2 ? undefined : quantile(handOvers, 0.5),
      handOverP99Ms: count < 2 ? undefined : quantile(handOvers, 0.99),
      commands: count === 0 ? undefined : commands / count,
      cpuUs: count === 0 ? undefined : cpuUs / count,
      longestWaitMs,
      starved: tasks - served.size,
      regrabShare: handOvers.length === 0 ? undefined : regrabs / handOvers.length,
      overlaps: overlaps + counted,
    },
  };
}
