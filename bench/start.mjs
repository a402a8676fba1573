// @ts-check
/** The benchmark: `npm run bench`. For its arguments see `npm run bench -- --help`. */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Bench } from "./bench.mjs";
import { readOptions, usage, workloadNames } from "./options.mjs";
import { Lookup } from "./report/lookup.mjs";
import { describeMachine, versionsInUse } from "./report/machine.mjs";
import { pageOf } from "./report/markdown.mjs";
import { merged } from "./report/merge.mjs";
import { plotsOf } from "./report/plots.mjs";
import { contended } from "./workloads/contended.mjs";
import { growth } from "./workloads/growth.mjs";
import { held } from "./workloads/held.mjs";
import { coldImport } from "./workloads/import.mjs";
import { killed } from "./workloads/killed.mjs";
import { renew } from "./workloads/renew.mjs";
import { sick } from "./workloads/sick.mjs";
import { throughput } from "./workloads/throughput.mjs";
import { waiting } from "./workloads/waiting.mjs";

/** @import { Options, Results, Series } from "./types.ts" */

const root = fileURLToPath(new URL("../", import.meta.url));
const folder = join(root, "bench");

/** @type {Readonly<Record<string, (bench: Bench) => Promise<void>>>} */
const workloads = {
  contended,
  killed,
  sick,
  renew,
  held,
  growth,
  waiting,
  import: coldImport,
};

/** @param {readonly string[]} npmArgs */
function npm(...npmArgs) {
  const { status } = spawnSync("npm", npmArgs, {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  });
  if (status !== 0) throw new Error(`npm ${npmArgs.join(" ")} ended with ${status}`);
}

/** @param {Options} options */
function prepare({ peers }) {
  // A test measures the build that it has made itself.
  if (process.env["HOLDFAST_BENCH_DIST"] === undefined) npm("run", "build", "--silent");
  if (peers && !existsSync(join(folder, "node_modules", ".package-lock.json"))) {
    npm("ci", "--prefix", "bench", "--no-audit", "--no-fund");
  }
}

/** @param {Options} options @returns {Promise<Results>} */
async function measure(options) {
  const machine = describeMachine();
  const beganMs = performance.now();
  const bench = new Bench(options);
  const timed = async (/** @type {string} */ name, /** @type {() => Promise<void>} */ run) => {
    const fromMs = performance.now();
    try {
      await run();
    } catch (error) {
      // A failed workload must not discard the earlier results.
      const reason = error instanceof Error ? error.message : String(error);
      bench.note(`${name}: ended early: ${reason.split("\n")[0]}`);
      console.error(`${name} ended early`, error);
      process.exitCode = 1;
    }
    bench.log(`${name} took ${Math.round((performance.now() - fromMs) / 1_000)} s`);
  };
  try {
    // Fresh servers vote only after half a minute, so those for later workloads start now.
    if (options.nodes.includes(5)) await bench.fleet("five");
    if (options.names.includes("sick")) await bench.fleet("sick");
    const quiet = options.names.filter((name) => name === "sequential" || name === "inflight");
    if (quiet.length > 0) await timed(quiet.join(" + "), () => throughput(bench, quiet));
    for (const name of workloadNames) {
      const run = workloads[name];
      if (run === undefined || !options.names.includes(name) || bench.isLate(name)) continue;
      await timed(name, () => run(bench));
    }
  } finally {
    await bench.close();
  }
  const { notes } = bench;
  const isKnown = (/** @type {Series} */ { values, problems }) =>
    Object.keys(values).length + Object.keys(problems).length > 0;
  const series = bench.series.filter(isKnown);
  const seconds = (performance.now() - beganMs) / 1_000;
  // Without the output folder, which is a path of this machine.
  const kept = { ...options, out: undefined };
  const versions = versionsInUse(options.peers);
  return { runs: [{ machine, options: kept, seconds, notes, versions }], series };
}

/**
 * Returns the folder for results. Only a full run replaces the committed ones. @param {Options}
 * options
 */
function outputFolder({ out, merge, quick, names, contenders, nodes, scale, peers }) {
  if (out !== undefined) return out;
  if (merge) return folder;
  const all =
    names.length === workloadNames.length && contenders.length === 0 && nodes.length === 2;
  return all && !quick && scale >= 1 && peers
    ? folder
    : mkdtempSync(join(tmpdir(), "holdfast-bench-"));
}

/** @param {Options} options @param {Results} measured */
function write(options, measured) {
  const out = outputFolder(options);
  const file = join(out, "results.json");
  const results = options.merge
    ? merged(JSON.parse(readFileSync(file, "utf8")), measured)
    : measured;
  const plots = join(out, "plots");
  rmSync(plots, { recursive: true, force: true });
  mkdirSync(plots, { recursive: true });
  const page = pageOf(results);
  writeFileSync(join(out, "results.md"), page);
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
  for (const [name, svg] of plotsOf(new Lookup(results.series))) {
    writeFileSync(join(plots, name), svg);
  }
  return { out, page };
}

async function main() {
  if (process.argv.includes("--help")) {
    console.log(usage);
    return;
  }
  const options = readOptions(process.argv.slice(2));
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    // Servers and processes are ended by exit handlers.
    process.once(signal, () => process.exit(1));
  }
  process.setMaxListeners(100);
  prepare(options);
  const results = await measure(options);
  const { out, page } = write(options, results);
  if (options.quick) console.log(page);
  console.log(`${Math.round(results.runs[0]?.seconds ?? 0)} s; written to ${out}`);
  const overlapping = results.series.filter(
    ({ contender, problems }) => contender.includes("fenced") && problems["overlaps"] !== undefined,
  );
  if (overlapping.length > 0) {
    console.error(`Holdfast let two in at once: ${JSON.stringify(overlapping)}`);
    process.exitCode = 1;
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
