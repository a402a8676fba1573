// @ts-check
/** Puts the results of some workloads in the place of those that are kept. */

/** @import { Results, Run } from "../types.ts" */

/**
 * Every workload of `measured` replaces its series, and its notes, in `kept`. A run of which no
 * workload is left leaves the page.
 *
 * @param {Results} kept
 * @param {Results} measured
 * @returns {Results}
 */
export function merged(kept, measured) {
  const isNew = (/** @type {string} */ name) =>
    measured.runs.some(({ options }) => options.names.includes(name));
  const older = kept.runs
    .map((run) => without(run, isNew))
    .filter(({ options }) => options.names.length > 0);
  return {
    runs: [...older, ...measured.runs],
    series: [...kept.series.filter(({ workload }) => !isNew(workload)), ...measured.series],
  };
}

/** @param {Run} run @param {(name: string) => boolean} isGone @returns {Run} */
function without(run, isGone) {
  const names = run.options.names.filter((name) => !isGone(name));
  // A note begins with the names of its workloads.
  const notes = run.notes.filter((note) => {
    const about = run.options.names.filter((name) => note.split(":")[0]?.includes(name));
    return about.length === 0 || about.some((name) => names.includes(name));
  });
  return { ...run, options: { ...run.options, names }, notes };
}
