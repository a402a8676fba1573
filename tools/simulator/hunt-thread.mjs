// @ts-check
/** One thread of a hunt: runs the block of seeds that it is sent, and sends back what it found. */

import { parentPort, workerData } from "node:worker_threads";
import { loadSimulator } from "./build-simulator.mjs";
import { addTotals, blockSize, emptyTotals } from "./hunt-state.mjs";
import { minimise } from "./minimise.mjs";
import { nodeHost, outsideMicrotasks } from "./node-host.mjs";

/** @typedef {import("../../src/simulator/index.ts").Scenario} Scenario */
/** @typedef {import("../../src/simulator/index.ts").SimulationReport} Report */
/** @typedef {import("./hunt-state.mjs").Found} Found */
/** @typedef {import("./hunt-state.mjs").Totals} Totals */
/** @typedef {{ block: number, totals: Totals, found: Found[] }} Finished */

const { simulateNow, scenarioOf } = await loadSimulator(workerData.folder);
const host = nodeHost();

/** @param {Scenario} scenario */
const run = (scenario) => simulateNow(scenario, host, { trace: "off" });

/** @param {number} first @returns {Promise<Omit<Finished, "block">>} */
async function runBlock(first) {
  const totals = emptyTotals();
  /** @type {Found[]} */
  const found = [];
  for (let seed = first; seed < first + blockSize; seed += 1) {
    const scenario = scenarioOf(seed);
    const report = await outsideMicrotasks(() => run(scenario));
    addTotals(totals, totalsOf(report));
    const [violation] = report.violations;
    if (violation === undefined) continue;
    const { rule, text } = violation;
    found.push({ seed, rule, text, scenario: await minimise(run, scenario, rule) });
  }
  return { totals, found };
}

/** @param {Report} report @returns {Totals} */
function totalsOf({ eventCount, history, unfenced, fenced, breaks }) {
  // Fences have no promise if counters were lost against the assumptions.
  const isExcused = breaks.some(({ promise }) => promise === "fences");
  return {
    seeds: 1,
    events: eventCount,
    tenures: history.tenures.length,
    cpuSeconds: 0,
    lostUnfenced: unfenced.lost,
    writtenUnfenced: unfenced.accepted,
    lostFenced: isExcused ? 0 : fenced.lost,
    writtenFenced: fenced.accepted,
    refused: fenced.rejected,
    lostWithCounters: isExcused ? fenced.lost : 0,
  };
}

parentPort?.on("message", ({ block, seed }) => {
  void runBlock(seed).then((done) => parentPort?.postMessage({ block, ...done }));
});
