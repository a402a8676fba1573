// @ts-check
/** Medians, quantiles and paired ratios. */

/** @import { Series } from "../types.ts" */

/** @param {readonly number[]} sorted @param {number} share */
export function quantile(sorted, share) {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** @param {readonly (number | undefined)[]} values @returns {number | undefined} */
export function median(values) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  if (sorted.length === 0) return undefined;
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

/** @param {readonly (number | undefined)[]} values */
export function spreadOf(values) {
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0) return undefined;
  return { least: Math.min(...known), most: Math.max(...known) };
}

/**
 * Returns each round's value divided by the base's value of the same round, so that a busy moment
 * of the machine affects both.
 *
 * @param {Series | undefined} series
 * @param {Series | undefined} base
 * @param {string} metric
 * @returns {number[]}
 */
export function pairedRatios(series, base, metric) {
  const below = base?.values[metric] ?? [];
  return (series?.values[metric] ?? []).flatMap((value, round) => {
    const against = below[round];
    return value === undefined || against === undefined || against === 0 ? [] : [value / against];
  });
}

/** A floor beyond these shares of its median is off: the machine was busy, or still warming up. */
const floorShares = { least: 0.75, most: 4 / 3 };

/**
 * Returns the rounds whose floor is off, or missing where other rounds have one.
 *
 * @param {readonly (number | undefined)[]} values
 * @param {number} rounds
 * @returns {number[]}
 */
export function roundsOff(values, rounds) {
  const usual = median(values);
  if (usual === undefined) return [];
  return Array.from({ length: rounds }, (_, round) => round).filter((round) => {
    const share = (values[round] ?? 0) / usual;
    return share < floorShares.least || share > floorShares.most;
  });
}
