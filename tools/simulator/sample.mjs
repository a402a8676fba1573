// @ts-check
/**
 * Chooses the planted bugs that one run of `npm test` looks for. All of them would take an hour of
 * one processor, because some need a thousand worlds. So each commit gets a sample of the bugs that
 * are found soon. One commit always gets the same sample, and other commits get others.
 */

import { createHash } from "node:crypto";

/** Seeds that it took to find each bug, by its name; the worst of some starting points. */
/** @typedef {Readonly<Record<string, number>>} KnownSeeds */

/** A bug that needs more seeds is left to `npm run sim:mutants`. */
export const seedsMax = 40;

/** Processor time of an idle machine: to compile and load a bug, and to run one seed. */
const secondsPerBug = 2;
const secondsPerSeed = 0.05;

/**
 * @param {string} commit
 * @param {KnownSeeds} known
 * @param {number} budgetSeconds of processor time, by what was known before
 * @returns {string[]} names of bugs
 */
export function sampleOf(commit, known, budgetSeconds) {
  /** @param {string} name */
  const place = (name) => createHash("sha1").update(`${commit} ${name}`).digest("hex");
  const eligible = Object.entries(known)
    .filter(([, seeds]) => seeds <= seedsMax)
    .map(([name, seeds]) => ({ name, place: place(name), seeds }))
    .sort((a, b) => (a.place < b.place ? -1 : 1));
  let leftSeconds = budgetSeconds;
  return eligible.flatMap(({ name, seeds }) => {
    const seconds = secondsPerBug + seeds * secondsPerSeed;
    if (seconds > leftSeconds) return [];
    leftSeconds -= seconds;
    return [name];
  });
}

/**
 * Returns the limit for the seeds of a sampled bug. A change of the code changes which seeds find
 * it, so the limit is far above the known number.
 *
 * @param {number} known
 */
export function seedLimit(known) {
  return Math.max(300, 25 * known);
}
