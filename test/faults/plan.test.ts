import { expect, test } from "vitest";
import { drawPlan, faultKinds } from "../../faults/plan.ts";

const options = { seed: 7, durationMs: 300_000, nodes: 5, clients: 5, clockSteps: true };

test("draws the same faults for the same seed, and others for another", () => {
  expect(drawPlan(options)).toEqual(drawPlan(options));
  expect(drawPlan({ ...options, seed: 8 })).not.toEqual(drawPlan(options));
});

test("draws every kind of fault within five minutes, and more than 250 in all", () => {
  const plan = drawPlan(options);
  expect(plan.length).toBeGreaterThan(250);
  expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(faultKinds));
});

test("leaves clocks alone where they cannot be stepped", () => {
  const plan = drawPlan({ ...options, clockSteps: false });
  expect(plan.some(({ kind }) => kind === "clock-step")).toBe(false);
});

test("heals every fault before the time is up, and never has two on one node or client", () => {
  const plan = drawPlan(options);
  for (const one of plan) {
    expect(one.atMs + one.durationMs).toBeLessThan(options.durationMs);
    for (const other of plan) {
      if (other.id <= one.id || other.atMs > one.atMs + one.durationMs) continue;
      const sameNode = one.node !== undefined && one.node === other.node;
      const sameClient = one.client !== undefined && one.client === other.client;
      expect(sameNode || sameClient).toBe(false);
    }
  }
});
