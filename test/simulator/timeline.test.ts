import { expect, test } from "vitest";
import { buildSimulator, loadSimulator } from "../../tools/simulator/build-simulator.mjs";
import { nodeHost, outsideMicrotasks } from "../../tools/simulator/node-host.mjs";

// Compiled once, because transforming module by module would be several times slower.
const { htmlTimeline, scenarioOf, simulateNow, textTimeline } =
  await loadSimulator(buildSimulator());

const report = await outsideMicrotasks(() =>
  simulateNow(scenarioOf(22), nodeHost(), { keepTrace: true }),
);

test("the timeline in text names clients, nodes, faults and how to replay it", () => {
  const text = textTimeline(report);
  for (const part of ["client-1", "node-1", "fault", "acquired", "npm run sim -- --seed 22"]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain("executed");
  expect(textTimeline(report, { commands: true })).toContain("executed");
});

test("the drawn timeline needs no other file, and has a lane for each client and node", () => {
  const html = htmlTimeline(report);
  expect(html).toContain("<svg");
  for (const lane of ["client-1", "client-2", "node-1", "node-3"])
    expect(html).toContain(`>${lane}<`);
  expect(html).toContain('class="lease a"');
  expect(html).not.toMatch(/(src|href)=|@import|url\(/);
});
