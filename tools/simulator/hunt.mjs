// @ts-check
/**
 * Hunts fresh seeds. A seed that breaks a rule is cut down to the faults it needs and added to
 * test/simulator/seeds.json, which every `npm test` runs.
 *
 *   npm run sim:hunt -- --minutes 10            on all cores
 *   npm run sim:hunt -- --minutes 10 --jobs 1 --from 1000000
 */

import { fork } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildSimulator, loadSimulator, root } from "./build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "./node-host.mjs";
import { minimise } from "./minimise.mjs";

/** @typedef {import("../../src/simulator/index.ts").Scenario} Scenario */
/** @typedef {{ kind: "batch", seeds: number, events: number, tenures: number, lost: number[] }} Batch */
/** @typedef {{ kind: "found", seed: number, rule: string, text: string, scenario: Scenario }} Found */

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    jobs: { type: "string", default: String(availableParallelism()) },
    from: { type: "string" },
    child: { type: "string" },
    step: { type: "string", default: "1" },
    "dry-run": { type: "boolean", default: false },
  },
});

const batchSize = 50;
/** One bug must not fill the file: of each rule so many are kept per hunt. */
const keptPerRule = 3;
const file = join(root, "test", "simulator", "seeds.json");

/** @param {string} folder */
async function huntInChild(folder) {
  const { simulateNow, scenarioOf } = await loadSimulator(folder);
  const host = nodeHost();
  const run = (/** @type {Scenario} */ scenario) => simulateNow(scenario, host);
  const step = Number(values.step);
  // Nobody is left to tell.
  process.once("disconnect", () => process.exit());
  for (let seed = Number(values.from); ;) {
    /** @type {Batch} */
    const batch = { kind: "batch", seeds: 0, events: 0, tenures: 0, lost: [0, 0, 0, 0, 0, 0] };
    for (; batch.seeds < batchSize; seed += step) {
      const scenario = scenarioOf(seed);
      const report = await outsideMicrotasks(() => run(scenario));
      const { unfenced, fenced, violations } = report;
      batch.seeds += 1;
      batch.events += report.eventCount;
      batch.tenures += report.history.tenures.length;
      const more = [
        unfenced.lost,
        unfenced.accepted,
        fenced.lost,
        fenced.accepted,
        fenced.rejected,
        // Beyond what is promised: counters were lost where nobody saw to it that they last.
        report.breaks.some(({ promise }) => promise === "fences") ? fenced.lost : 0,
      ];
      batch.lost = batch.lost.map((value, index) => value + (more[index] ?? 0));
      const [first] = violations;
      if (first === undefined) continue;
      const { rule, text } = first;
      const smallest = await minimise(run, scenario, rule);
      process.send?.({ kind: "found", seed, rule, text, scenario: smallest });
    }
    process.send?.(batch);
  }
}

async function main() {
  const folder = buildSimulator();
  const jobs = Number(values.jobs);
  const from = Number(values.from ?? Math.floor(Math.random() * 2 ** 40));
  const minutes = Number(values.minutes);
  console.log(`hunting from seed ${from} for ${minutes} minutes, ${jobs} at once`);
  const total = { seeds: 0, events: 0, tenures: 0, lost: [0, 0, 0, 0, 0, 0] };
  /** @type {Found[]} */
  const found = [];
  const startedMs = performance.now();
  const children = Array.from({ length: jobs }, (_, index) => {
    const args = ["--child", folder, "--from", String(from + index), "--step", String(jobs)];
    const child = fork(fileURLToPath(import.meta.url), args);
    child.on("message", (/** @type {Batch | Found} */ message) => {
      if (message.kind === "found") {
        found.push(message);
        const left = message.scenario.faults.length;
        console.log(`seed ${message.seed}: ${message.rule}: ${message.text} (${left} faults)`);
        return;
      }
      total.seeds += message.seeds;
      total.events += message.events;
      total.tenures += message.tenures;
      total.lost = total.lost.map((value, at) => value + (message.lost[at] ?? 0));
    });
    return child;
  });
  const tell = () => {
    const seconds = (performance.now() - startedMs) / 1_000;
    const [lost = 0, written = 0, fencedLost = 0, fencedWritten = 0, refused = 0] = total.lost;
    const excused = total.lost[5] ?? 0;
    console.log(
      `${(seconds / 60).toFixed(1)} min: ${total.seeds} seeds, ` +
        `${Math.round((total.seeds / seconds) * 60)} per minute, ` +
        `${Math.round(total.events / seconds)} events/s, ${total.tenures} tenures; lost updates: ` +
        `${lost} of ${written} unfenced, ${fencedLost - excused} of ${fencedWritten} fenced ` +
        `(${refused} refused; ${excused} more lost with their counters); ${found.length} failing`,
    );
  };
  const timer = setInterval(tell, 60_000);
  await new Promise((resolve) => {
    setTimeout(resolve, minutes * 60_000);
  });
  clearInterval(timer);
  for (const child of children) child.kill();
  tell();
  if (found.length > 0) {
    if (!values["dry-run"]) save(found);
    process.exitCode = 1;
  }
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

if (values.child === undefined) await main();
else await huntInChild(values.child);
