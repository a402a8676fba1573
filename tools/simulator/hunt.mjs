// @ts-check
/**
 * Hunts fresh seeds on all cores. A seed that breaks a rule is cut down to the faults it needs and
 * added to test/simulator/seeds.json, which every `npm test` runs.
 *
 *   npm run sim:hunt -- --minutes 10            goes on where the last hunt on these sources ended
 *   npm run sim:hunt -- --seeds 1000000         until so many have run on these sources in total
 *   npm run sim:hunt -- --status                prints the totals
 *   … --jobs 1 --from 1000000 --state hunts.json --dry-run
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { buildSimulator, root } from "./build-simulator.mjs";
import { blockSize, defaultStatePath, HuntState } from "./hunt-state.mjs";

/** @typedef {import("./hunt-state.mjs").Found} Found */
/** @typedef {import("./hunt-state.mjs").Totals} Totals */

const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    seeds: { type: "string" },
    jobs: { type: "string", default: String(availableParallelism()) },
    from: { type: "string" },
    state: { type: "string", default: defaultStatePath() },
    status: { type: "boolean", default: false },
    "dry-run": { type: "boolean", default: false },
  },
});

/** Limit for the seeds that are kept per rule, so that one bug does not fill the file. */
const keptPerRule = 3;
const file = join(root, "test", "simulator", "seeds.json");

const folder = buildSimulator();
const from = values.from === undefined ? undefined : Number(values.from);
const state = new HuntState(values.state, basename(folder), from);

/** @param {Totals} totals @param {number} failing */
function described(totals, failing) {
  const { seeds, events, tenures, cpuSeconds, lostUnfenced, writtenUnfenced } = totals;
  const { lostFenced, writtenFenced, refused, lostWithCounters } = totals;
  const perMinute = Math.round((seeds / Math.max(1, cpuSeconds)) * 60);
  return (
    `${seeds} seeds in ${(cpuSeconds / 3_600).toFixed(2)} processor hours ` +
    `(${perMinute} a minute of one processor), ${events} events, ${tenures} tenures; lost updates: ` +
    `${lostUnfenced} of ${writtenUnfenced} unfenced, ${lostFenced} of ${writtenFenced} fenced ` +
    `(${refused} refused; ${lostWithCounters} more lost with their counters); ${failing} failing`
  );
}

function report() {
  const { sources, from: first, totals, found } = state.hunt;
  console.log(`sources ${sources}, from seed ${first}: ${described(totals, found.length)}`);
}

let countedMicros = 0;

/** Returns the processor time of this process that was not counted yet. */
function secondsSpent() {
  const { user, system } = process.cpuUsage();
  const micros = user + system - countedMicros;
  countedMicros += micros;
  return micros / 1_000_000;
}

/** Runs blocks in all threads until time or seeds are used up. @returns {Promise<Found[]>} */
async function hunt() {
  const noLimit = values.minutes === undefined && values.seeds === undefined;
  const minutes = Number(values.minutes ?? (noLimit ? 1 : Infinity));
  const seedsMax = Number(values.seeds ?? Infinity);
  const endMs = performance.now() + minutes * 60_000;
  /** @type {Found[]} */
  const found = [];
  let given = state.hunt.totals.seeds;
  const goesOn = () => performance.now() < endMs && given < seedsMax;
  const timer = setInterval(report, 60_000);
  const thread = async () => {
    const worker = new Worker(new URL("hunt-thread.mjs", import.meta.url), {
      workerData: { folder },
    });
    try {
      while (goesOn()) {
        const { block, seed } = state.take();
        given += blockSize;
        const done = await answerOf(worker, { block, seed });
        done.totals.cpuSeconds = secondsSpent();
        state.finish(block, done.totals, done.found);
        for (const one of done.found) {
          const left = `${one.scenario.faults.length} faults`;
          console.log(`seed ${one.seed}: ${one.rule}: ${one.text} (${left})`);
          found.push(one);
        }
      }
    } finally {
      await worker.terminate();
    }
  };
  try {
    await Promise.all(Array.from({ length: Number(values.jobs) }, thread));
  } finally {
    clearInterval(timer);
  }
  return found;
}

/**
 * @param {Worker} worker
 * @param {{ block: number, seed: number }} request
 * @returns {Promise<import("./hunt-thread.mjs").Finished>}
 */
function answerOf(worker, request) {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (message) => {
      worker.off("error", reject);
      resolve(message);
    });
    worker.postMessage(request);
  });
}

/** @param {readonly Found[]} found */
function save(found) {
  const saved = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  const known = new Set(saved.map((/** @type {Found} */ { seed }) => seed));
  /** @type {Map<string, number>} */
  const perRule = new Map();
  for (const { seed, rule, text, scenario } of found) {
    const count = perRule.get(rule) ?? 0;
    if (count >= keptPerRule || known.has(seed)) continue;
    perRule.set(rule, count + 1);
    saved.push({ seed, rule, text, scenario });
  }
  writeFileSync(file, `${JSON.stringify(saved, null, 2)}\n`);
  console.log(`added to ${file}`);
}

if (!values.status) {
  const found = await hunt();
  if (found.length > 0) {
    if (!values["dry-run"]) save(found);
    process.exitCode = 1;
  }
}
report();
