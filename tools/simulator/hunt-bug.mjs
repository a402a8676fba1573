// @ts-check
/** Plants one bug in a copy of the sources, and counts the seeds until a rule is broken. */

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildSimulator, loadSimulator } from "./build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "./node-host.mjs";

/** @typedef {import("./mutant-list.mjs").Mutant} Mutant */

/**
 * @typedef {object} Hunted
 * @property {string} name
 * @property {number} seeds that ran
 * @property {number} seconds of processor time for them
 * @property {number} [seed] that found it
 * @property {string} [rule]
 * @property {string} [text]
 */

/**
 * @param {Mutant} mutant
 * @param {{ from: number, seeds: number, source?: string | undefined }} range
 * @returns {Promise<Hunted>}
 */
export async function huntBug({ name, changes }, { from, seeds, source }) {
  const built = buildSimulator((folder) => plant(name, changes, folder), source);
  try {
    const { simulateNow, scenarioOf } = await loadSimulator(built);
    const sound = await loadSimulator(buildSimulator(undefined, source));
    const host = nodeHost();
    const before = process.cpuUsage();
    const seconds = () => {
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000_000;
    };
    for (let seed = from; seed < from + seeds; seed += 1) {
      const { violations } = await outsideMicrotasks(() => simulateNow(scenarioOf(seed), host));
      const [first] = violations;
      if (first === undefined) continue;
      // A seed that fails without the bug, too, proves nothing about it.
      const own = await outsideMicrotasks(() => sound.simulateNow(scenarioOf(seed), host));
      if (own.violations.length > 0) continue;
      const { rule, text } = first;
      return { name, seeds: seed - from + 1, seed, rule, text, seconds: seconds() };
    }
    return { name, seeds, seconds: seconds() };
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

/** @param {string} name @param {Mutant["changes"]} changes @param {string} folder */
function plant(name, changes, folder) {
  for (const { file, from, to } of changes) {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    if (text.split(from).length !== 2) {
      throw new Error(`${name}: ${file} has not exactly one place that reads\n${from}`);
    }
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  }
}
