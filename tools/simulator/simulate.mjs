// @ts-check
/**
 * The simulator on the command line.
 *
 *   npm run sim -- --seed 7                     replays one seed and prints what happened
 *   npm run sim -- --seed 7 --commands          … with every command that a node executed
 *   npm run sim -- --seed 7 --html out.html     … and draws it
 *   npm run sim -- --seeds 1000 --from 1        runs many, prints totals
 *   npm run sim -- --replay 1000                runs each twice and compares them bit for bit
 *   npm run sim -- --saved 3                    replays an entry of test/simulator/seeds.json
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildSimulator, loadSimulator, root } from "./build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "./node-host.mjs";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    saved: { type: "string" },
    seeds: { type: "string" },
    replay: { type: "string" },
    from: { type: "string", default: "1" },
    html: { type: "string" },
    commands: { type: "boolean", default: false },
    width: { type: "string", default: "120" },
  },
});

const simulator = await loadSimulator(buildSimulator());
const host = nodeHost();

/** @param {import("../../src/simulator/index.ts").Scenario} scenario @param {string} which */
async function showOne(scenario, which) {
  const { simulateNow, textTimeline, htmlTimeline } = simulator;
  const report = await outsideMicrotasks(() => simulateNow(scenario, host, { keepTrace: true }));
  const { commands, width } = values;
  const replay = `npm run sim -- ${which}`;
  console.log(textTimeline(report, { commands, width: Number(width), replay }));
  if (values.html !== undefined) {
    writeFileSync(values.html, htmlTimeline(report, { replay }));
    console.log(`drawn in ${values.html}`);
  }
  if (report.violations.length > 0) process.exitCode = 1;
}

/** @param {number} count @param {boolean} twice */
async function runMany(count, twice) {
  const { simulateNow, scenarioOf } = simulator;
  const from = Number(values.from);
  console.log(`seeds ${from} to ${from + count - 1}${twice ? ", each twice" : ""}`);
  const startedMs = performance.now();
  let [events, runs, tenures, differing] = [0, 0, 0, 0];
  const lost = { unfenced: 0, ofUnfenced: 0, fenced: 0, ofFenced: 0, refused: 0, excused: 0 };
  /** @type {Map<string, number>} */
  const faults = new Map();
  for (let seed = from; seed < from + count; seed += 1) {
    const run = () => outsideMicrotasks(() => simulateNow(scenarioOf(seed), host));
    const report = await run();
    const again = twice ? await run() : report;
    runs += twice ? 2 : 1;
    events += report.eventCount + (twice ? again.eventCount : 0);
    tenures += report.history.tenures.length;
    lost.unfenced += report.unfenced.lost;
    lost.ofUnfenced += report.unfenced.accepted;
    // If counters were lost for good, the order of fences is not promised.
    const isExcused = report.breaks.some(({ promise }) => promise === "fences");
    lost[isExcused ? "excused" : "fenced"] += report.fenced.lost;
    lost.ofFenced += report.fenced.accepted;
    lost.refused += report.fenced.rejected;
    for (const [kind, times] of report.faults) faults.set(kind, (faults.get(kind) ?? 0) + times);
    if (report.hash !== again.hash || report.eventCount !== again.eventCount) {
      differing += 1;
      console.log(`seed ${seed}: ${report.hash} and then ${again.hash}`);
    }
    for (const { rule, text } of report.violations) console.log(`seed ${seed}: ${rule}: ${text}`);
    if (report.violations.length > 0) process.exitCode = 1;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const perMinute = Math.round((runs / seconds) * 60);
  console.log(`${runs} runs, ${events} events in ${seconds.toFixed(1)} s`);
  console.log(`${Math.round(events / seconds)} events per second, ${perMinute} seeds per minute`);
  console.log(
    `${tenures} tenures; faults: ${[...faults].map((pair) => pair.join(" ")).join(", ")}`,
  );
  console.log(`lost updates: ${share(lost.unfenced, lost.ofUnfenced)} unfenced,`);
  console.log(
    `              ${share(lost.fenced, lost.ofFenced)} fenced (${lost.refused} refused; ` +
      `${lost.excused} more lost with their counters)`,
  );
  if (!twice) return;
  console.log(`${count - differing} of ${count} seeds replayed bit for bit`);
  if (differing > 0) process.exitCode = 1;
}

/** @param {number} part @param {number} whole */
function share(part, whole) {
  return `${part} of ${whole} (${((100 * part) / Math.max(1, whole)).toFixed(3)} %)`;
}

if (values.saved !== undefined) {
  const saved = JSON.parse(readFileSync(join(root, "test", "simulator", "seeds.json"), "utf8"));
  const entry = saved[Number(values.saved)];
  if (entry === undefined) throw new RangeError(`there are ${saved.length} saved seeds`);
  const scenario = entry.scenario ?? simulator.scenarioOf(entry.seed);
  await showOne(scenario, `--saved ${values.saved}`);
} else if (values.replay !== undefined) await runMany(Number(values.replay), true);
else if (values.seeds !== undefined) await runMany(Number(values.seeds), false);
else {
  const seed = Number(values.seed ?? 7);
  await showOne(simulator.scenarioOf(seed), `--seed ${seed}`);
}
