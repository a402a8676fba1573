import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { buildSimulator, loadSimulator } from "../../tools/simulator/build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "../../tools/simulator/node-host.mjs";
import type { Scenario, SimulationReport } from "../../src/simulator/index.ts";

// Compiled once, because transforming module by module would be several times slower.
const { scenarioOf, simulateNow } = await loadSimulator(buildSimulator());

interface SavedSeed {
  readonly seed: number;
  readonly rule: string;
  readonly text: string;
  readonly scenario?: Scenario;
}

const saved = JSON.parse(
  readFileSync(new URL("seeds.json", import.meta.url), "utf8"),
) as SavedSeed[];
// For a machine that is kept busy by others.
vi.setConfig({ testTimeout: 240_000 });

const host = nodeHost();
const fixedCount = 150;
const freshCount = 250;
/** Time limit for fresh seeds: slow machines run fewer of them, but at least one. */
const budgetMs = 20_000;

function run(scenario: Scenario): Promise<SimulationReport> {
  return outsideMicrotasks(() => simulateNow(scenario, host));
}

test("every rule is kept in all seeds that ever failed", async () => {
  for (const { seed, rule, scenario } of saved) {
    const { violations } = await run(scenario ?? scenarioOf(seed));
    expect(violations, `seed ${seed}, which once broke ${rule}`).toEqual([]);
  }
});

test(`every rule is kept in ${fixedCount} fixed seeds, and no update behind a fence is lost`, async () => {
  let tenures = 0;
  const lost = { unfenced: 0, fenced: 0 };
  for (let seed = 1; seed <= fixedCount; seed += 1) {
    const { violations, history, unfenced, fenced } = await run(scenarioOf(seed));
    expect(violations, `npm run sim -- --seed ${seed}`).toEqual([]);
    tenures += history.tenures.length;
    lost.unfenced += unfenced.lost;
    lost.fenced += fenced.lost;
  }
  expect(tenures).toBeGreaterThan(fixedCount * 5);
  // The register without a fence shows that the faults are strong enough to lose updates.
  expect(lost.unfenced).toBeGreaterThan(0);
  expect(lost.fenced).toBe(0);
});

test("every rule is kept in fresh seeds", async () => {
  const from = Math.floor(Math.random() * 2 ** 40);
  process.stdout.write(`fresh seeds from ${from}\n`);
  const endMs = performance.now() + budgetMs;
  for (let seed = from; seed < from + freshCount; seed += 1) {
    if (seed > from && performance.now() > endMs) break;
    const { violations } = await run(scenarioOf(seed));
    expect(violations, `npm run sim -- --seed ${seed}`).toEqual([]);
  }
});
