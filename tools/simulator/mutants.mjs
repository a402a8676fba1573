// @ts-check
/**
 * Does the simulator find what it is there to find? Plants one bug after the other and counts the
 * seeds it takes until a checker objects. A mutant that survives is a hole in the checkers.
 *
 *   npm run sim:mutants                        all of them
 *   npm run sim:mutants -- --only no-raise     one
 *   … --seeds 8000 --from 1 --jobs 2
 */

import { fork } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { buildSimulator, loadSimulator, snapshotSources } from "./build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "./node-host.mjs";
import { mutants } from "./mutant-list.mjs";

/** @typedef {import("./mutant-list.mjs").Mutant} Mutant */
/** @typedef {{ name: string, seeds: number, seed?: number, rule?: string, text?: string, seconds: number }} Found */

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    seeds: { type: "string", default: "8000" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    child: { type: "boolean", default: false },
    source: { type: "string" },
    json: { type: "string" },
  },
});

/** @param {Mutant} mutant @returns {Promise<Found>} */
async function hunt(mutant) {
  const built = buildSimulator((folder) => {
    for (const { file, from, to } of mutant.changes) {
      const path = join(folder, file);
      const text = readFileSync(path, "utf8");
      if (text.split(from).length !== 2) {
        throw new Error(`${mutant.name}: ${file} has not exactly one place that reads\n${from}`);
      }
      writeFileSync(
        path,
        text.replace(from, () => to),
      );
    }
  });
  const startedMs = performance.now();
  const seconds = () => (performance.now() - startedMs) / 1_000;
  try {
    const { simulateNow, scenarioOf } = await loadSimulator(built);
    const sound = await loadSimulator(buildSimulator(undefined, values.source));
    const host = nodeHost();
    const from = Number(values.from);
    const count = Number(values.seeds);
    for (let seed = from; seed < from + count; seed += 1) {
      const { violations } = await outsideMicrotasks(() => simulateNow(scenarioOf(seed), host));
      const [first] = violations;
      if (first === undefined) continue;
      // What the sources as they are do not get right either is no proof.
      const own = await outsideMicrotasks(() => sound.simulateNow(scenarioOf(seed), host));
      if (own.violations.length > 0) continue;
      const { rule, text } = first;
      return { name: mutant.name, seeds: seed - from + 1, seed, rule, text, seconds: seconds() };
    }
    return { name: mutant.name, seeds: count, seconds: seconds() };
  } finally {
    rmSync(built, { recursive: true, force: true });
  }
}

/** @param {Mutant} mutant @param {string} source @returns {Promise<Found>} */
function huntInChild(mutant, source) {
  return new Promise((resolve) => {
    const args = ["--child", "--only", mutant.name, "--source", source].concat([
      "--seeds",
      values.seeds,
      "--from",
      values.from,
    ]);
    const child = fork(fileURLToPath(import.meta.url), args);
    child.once("message", (found) => resolve(/** @type {Found} */ (found)));
    child.once("exit", () => resolve({ name: mutant.name, seeds: 0, seconds: 0 }));
  });
}

async function main() {
  const wanted = values.only?.split(",");
  const chosen = mutants.filter(({ name }) => wanted === undefined || wanted.includes(name));
  if (chosen.length === 0) throw new Error(`no mutant is called ${values.only}`);
  /** @type {Found[]} */
  const all = [];
  const queue = [...chosen];
  const source = snapshotSources();
  const work = async () => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const found = await huntInChild(mutant, source);
      all.push(found);
      const { name, seeds, seed, rule, text = "", seconds } = found;
      const told = seed === undefined ? "SURVIVED" : `seed ${seed}: ${rule}: ${text.slice(0, 90)}`;
      console.log(
        `${name.padEnd(28)} ${String(seeds).padStart(6)} seeds ${seconds.toFixed(1).padStart(7)} s  ${told}`,
      );
    }
  };
  try {
    await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
  const survivors = all.filter(({ seed }) => seed === undefined);
  console.log(`\n${all.length - survivors.length} of ${all.length} mutants found`);
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(all, null, 2)}\n`);
  if (survivors.length > 0) process.exitCode = 1;
}

if (values.child) {
  const mutant = mutants.find(({ name }) => name === values.only);
  if (mutant === undefined) throw new Error(`no mutant is called ${values.only}`);
  process.send?.(await hunt(mutant), () => process.exit(0));
} else {
  await main();
}
