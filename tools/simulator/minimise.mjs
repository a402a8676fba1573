// @ts-check
/** Removes faults from a failing scenario while the same rule is still broken. */

import { outsideMicrotasks } from "./node-host.mjs";

/** @typedef {import("../../src/simulator/index.ts").Scenario} Scenario */
/** @typedef {import("../../src/simulator/index.ts").SimulationReport} Report */

/**
 * @param {(scenario: Scenario) => Report} run
 * @param {Scenario} scenario that breaks `rule`
 * @param {string} rule
 * @param {number} [runsMax]
 * @returns {Promise<Scenario>}
 */
export async function minimise(run, scenario, rule, runsMax = 300) {
  let runs = 0;
  /** @param {Scenario} candidate */
  const fails = async (candidate) => {
    runs += 1;
    const { violations } = await outsideMicrotasks(() => run(candidate));
    return violations.some((violation) => violation.rule === rule);
  };
  let smallest = scenario;
  for (let size = Math.ceil(scenario.faults.length / 2); size >= 1; size = Math.floor(size / 2)) {
    let start = 0;
    while (start < smallest.faults.length) {
      if (runs >= runsMax) return smallest;
      const candidate = { ...smallest, faults: smallest.faults.toSpliced(start, size) };
      if (await fails(candidate)) smallest = candidate;
      else start += size;
    }
  }
  return smallest;
}
