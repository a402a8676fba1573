import { describe, expect, test } from "vitest";
import { nodeHost, outsideMicrotasks } from "../../tools/simulator/node-host.mjs";
import { violationRules, type Violation } from "../../src/simulator/history.ts";
import { Run } from "../../src/simulator/simulate.ts";
import { readProject } from "../support/source-files.ts";
import { calmWorld, hostWith, plants, type Plant } from "./planted-violations.ts";

const node = nodeHost();

/** Runs the plant's world, with or without its lie, and returns what the checkers report. */
function violationsIn(plant: Plant, isPlanted: boolean): Promise<readonly Violation[]> {
  const { sabotage = {}, stepsMax, unhandled } = isPlanted ? plant : {};
  const host = hostWith(() => void node.drain(), unhandled);
  return outsideMicrotasks(() => {
    const limit = stepsMax === undefined ? {} : { stepsMax };
    const run = new Run(calmWorld(plant), { sabotage, ...limit });
    while (run.goesOn()) if (run.step()) void host.drain();
    return run.report(host).violations;
  });
}

test("every rule has a planted violation", () => {
  expect(Object.keys(plants).toSorted()).toEqual([...violationRules].toSorted());
});

test("every place that reports a rule has a planted violation of its own", () => {
  const sources = readProject().filter(
    ({ path }) => path.startsWith("src/simulator/") && !path.endsWith("/history.ts"),
  );
  for (const rule of violationRules) {
    const places = sources.reduce((sum, { text }) => sum + text.split(`"${rule}"`).length - 1, 0);
    expect(places, `${rule} is reported`).toBeGreaterThan(0);
    expect(plants[rule].length, rule).toBeGreaterThanOrEqual(places);
  }
});

describe.each(violationRules)("%s", (rule) => {
  test.each(plants[rule])("is reported if $how, and only then", async (plant) => {
    const planted = await violationsIn(plant, true);
    const texts = planted.filter((each) => each.rule === rule).map(({ text }) => text);
    expect(texts).toContainEqual(expect.stringMatching(plant.text));
    expect(await violationsIn(plant, false)).toEqual([]);
  });
});
