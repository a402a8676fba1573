// @ts-check
/**
 * Plants one bug after the other and counts the seeds until a checker of the simulator reports a
 * violation. A bug without one shows a gap in the checkers.
 *
 *   npm run sim:mutants                        all of them, on all cores
 *   npm run sim:mutants -- --only no-raise     one, or several with commas between
 *   npm run sim:mutants -- --sample <commit>   those that `npm test` looks for at this commit
 *   … --seeds 8000 --from 1 --jobs 2 --json found.json
 *   … --record                                 keeps the seeds that it took, for the samples
 */

import { fork } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { root, snapshotSources } from "./build-simulator.mjs";
import { huntBug } from "./hunt-bug.mjs";
import { mutants } from "./mutant-list.mjs";
import { sampleOf, seedLimit } from "./sample.mjs";

/** @typedef {import("./hunt-bug.mjs").Hunted} Hunted */

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    sample: { type: "string" },
    budget: { type: "string", default: "60" },
    seeds: { type: "string", default: "8000" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: String(availableParallelism()) },
    child: { type: "boolean", default: false },
    source: { type: "string" },
    json: { type: "string" },
    record: { type: "boolean", default: false },
  },
});

const knownFile = join(root, "test", "simulator", "known-seeds.json");
/** @type {import("./sample.mjs").KnownSeeds} */
const known = JSON.parse(readFileSync(knownFile, "utf8"));

/** @returns {{ name: string, seeds: number }[]} */
function chosen() {
  const { only, sample, budget, seeds } = values;
  if (sample !== undefined) {
    const names = sampleOf(sample, known, Number(budget));
    return names.map((name) => ({ name, seeds: seedLimit(known[name] ?? 1) }));
  }
  const wanted = only?.split(",");
  const found = mutants.filter(({ name }) => wanted === undefined || wanted.includes(name));
  if (found.length === 0) throw new Error(`no mutant is called ${only}`);
  return found.map(({ name }) => ({ name, seeds: Number(seeds) }));
}

/** @param {string} name @param {number} seeds @param {string} source @returns {Promise<Hunted>} */
function huntInChild(name, seeds, source) {
  return new Promise((resolve) => {
    const range = ["--seeds", String(seeds), "--from", values.from];
    const args = ["--child", "--only", name, "--source", source, ...range];
    const child = fork(fileURLToPath(import.meta.url), args);
    child.once("message", (found) => resolve(/** @type {Hunted} */ (found)));
    child.once("exit", () => resolve({ name, seeds: 0, seconds: 0 }));
  });
}

async function main() {
  const queue = chosen();
  /** @type {Hunted[]} */
  const all = [];
  // A long run builds many times. Edits of the sources meanwhile must not change it.
  const source = snapshotSources();
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const found = await huntInChild(next.name, next.seeds, source);
      all.push(found);
      const { name, seeds, seed, rule, text = "", seconds } = found;
      const result =
        seed === undefined ? "SURVIVED" : `seed ${seed}: ${rule}: ${text.slice(0, 90)}`;
      const cost = `${String(seeds).padStart(6)} seeds ${seconds.toFixed(1).padStart(7)} s`;
      console.log(`${name.padEnd(28)} ${cost}  ${result}`);
    }
  };
  try {
    await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
  report(all);
}

/** @param {readonly Hunted[]} all */
function report(all) {
  const survivors = all.filter(({ seed }) => seed === undefined);
  const bySeeds = all.toSorted((a, b) => b.seeds - a.seeds);
  const rarest = bySeeds.slice(0, 5).map(({ name, seeds }) => `${name} ${seeds}`);
  const seconds = all.reduce((sum, found) => sum + found.seconds, 0);
  const median = bySeeds[Math.floor(bySeeds.length / 2)]?.seeds ?? 0;
  console.log(`\n${all.length - survivors.length} of ${all.length} mutants found`);
  console.log(`${seconds.toFixed(0)} s of processor time; seeds: median ${median}, most:`);
  console.log(`  ${rarest.join(", ")}`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(all, null, 2)}\n`);
  if (values.record) record(all);
  if (survivors.length > 0) process.exitCode = 1;
}

/** Keeps the greater number of seeds for each bug that was found. @param {readonly Hunted[]} all */
function record(all) {
  const merged = { ...known };
  for (const { name, seed, seeds } of all) {
    if (seed !== undefined) merged[name] = Math.max(merged[name] ?? 0, seeds);
  }
  const names = mutants.map(({ name }) => name).filter((name) => merged[name] !== undefined);
  const kept = Object.fromEntries(names.map((name) => [name, merged[name]]));
  writeFileSync(knownFile, `${JSON.stringify(kept, null, 2)}\n`);
}

if (values.child) {
  const mutant = mutants.find(({ name }) => name === values.only);
  if (mutant === undefined) throw new Error(`no mutant is called ${values.only}`);
  const range = { from: Number(values.from), seeds: Number(values.seeds), source: values.source };
  process.send?.(await huntBug(mutant, range), () => process.exit(0));
} else {
  await main();
}
