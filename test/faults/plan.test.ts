import { expect, test } from "vitest";
import { describeOffset, drawClockOffsets } from "../../faults/clock-offsets.ts";
import { faultKinds, kindTerms } from "../../faults/kinds.ts";
import { drawPlan } from "../../faults/plan.ts";

const sizes = { seed: 7, durationMs: 300_000, nodes: 5, clients: 5 };
const options = { ...sizes, clockSteps: true, kinds: faultKinds };

test("a plan has the same faults for the same seed, and others for another", () => {
  expect(drawPlan(options)).toEqual(drawPlan(options));
  expect(drawPlan({ ...options, seed: 8 })).not.toEqual(drawPlan(options));
});

test("a plan has every kind of fault within five minutes, and more than 250 in all", () => {
  const plan = drawPlan(options);
  expect(plan.length).toBeGreaterThan(250);
  expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(faultKinds));
});

test("a plan has no clock steps if clocks cannot be stepped", () => {
  const plan = drawPlan({ ...options, clockSteps: false });
  expect(plan.some(({ kind }) => kind.endsWith("clock-step"))).toBe(false);
});

test("a plan has only the requested kinds of faults", () => {
  const plan = drawPlan({ ...options, kinds: ["busy", "kill-connections"] });
  expect(plan.length).toBeGreaterThan(100);
  expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(["busy", "kill-connections"]));
  expect(drawPlan({ ...options, kinds: [] })).toEqual([]);
});

test("a plan never makes a single node lose its data", () => {
  const plan = drawPlan({ ...options, nodes: 1 });
  expect(plan.length).toBeGreaterThan(100);
  expect(plan.some(({ kind }) => kindTerms[kind].losesData === true)).toBe(false);
});

test("a plan kills connections on one node, on a majority, and on all of them", () => {
  const plan = drawPlan({ ...options, kinds: ["kill-connections"] });
  const counts = plan.map(({ nodes }) => nodes.length);
  // Other numbers are possible if some of the nodes have a fault already.
  for (const count of [1, 3, 5]) expect(counts).toContain(count);
});

test("drawn clocks are wrong by seconds, minutes and years, in both directions", () => {
  const drawn = Array.from({ length: 40 }, (_, seed) => drawClockOffsets(seed, 5));
  expect(drawn.every(([first]) => first === 0)).toBe(true);
  const found = new Set(drawn.flat().map(describeOffset));
  for (const sign of ["+", "-"]) {
    for (const offset of ["3 s", "20 s", "5 min", "120 min", "3 years"]) {
      expect(found).toContain(sign + offset);
    }
  }
  expect(found.size).toBe(11);
  expect(drawClockOffsets(7, 5)).toEqual(drawClockOffsets(7, 5));
});

test("a plan heals every fault before its end, and never has two at once for a node or client", () => {
  const plan = drawPlan(options);
  for (const one of plan) {
    expect(one.atMs + one.durationMs).toBeLessThan(options.durationMs);
    for (const other of plan) {
      if (other.id <= one.id || other.atMs > one.atMs + one.durationMs) continue;
      const sameNode = one.nodes.some((node) => other.nodes.includes(node));
      const sameClient = one.client !== undefined && one.client === other.client;
      expect(sameNode || sameClient).toBe(false);
    }
  }
});
