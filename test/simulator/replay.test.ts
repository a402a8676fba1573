import { expect, test, vi } from "vitest";
import { buildSimulator, loadSimulator } from "../../tools/simulator/build-simulator.mjs";
import { Trace } from "../../src/simulator/trace.ts";
import { nodeHost, outsideMicrotasks, turningHost } from "../../tools/simulator/node-host.mjs";

// Compiled once, because transforming module by module would be several times slower.
const { scenarioOf, simulate, simulateNow } = await loadSimulator(buildSimulator());

// For a machine that is kept busy by others.
vi.setConfig({ testTimeout: 240_000 });

const host = nodeHost();

test("100 seeds are replayed bit for bit", async () => {
  for (let seed = 1; seed <= 100; seed += 1) {
    const run = () => outsideMicrotasks(() => simulateNow(scenarioOf(seed), host));
    const [first, second] = [await run(), await run()];
    expect([second.hash, second.eventCount], `seed ${seed}`).toEqual([
      first.hash,
      first.eventCount,
    ]);
  }
});

test("a run without a trace has the same events and findings", async () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const run = (trace: "hashed" | "off") =>
      outsideMicrotasks(() => simulateNow(scenarioOf(seed), host, { trace }));
    const [hashed, off] = [await run("hashed"), await run("off")];
    const facts = ({ eventCount, history, virtualMs }: typeof off) => ({
      eventCount,
      history,
      virtualMs,
    });
    expect(facts(off), `seed ${seed}`).toEqual(facts(hashed));
    expect([off.trace, off.hash]).toEqual([[], new Trace("off").hash]);
  }
});

test("different seeds have different results", async () => {
  const hashes = new Set<string>();
  for (let seed = 1; seed <= 20; seed += 1) {
    hashes.add((await outsideMicrotasks(() => simulateNow(scenarioOf(seed), host))).hash);
  }
  expect(hashes.size).toBe(20);
});

test("draining microtasks at once is as exact as a turn of the event loop", async () => {
  for (const seed of [3, 5, 14]) {
    const atOnce = await outsideMicrotasks(() => simulateNow(scenarioOf(seed), host));
    const turning = await simulate(scenarioOf(seed), turningHost());
    expect(turning.hash, `seed ${seed}`).toBe(atOnce.hash);
  }
});

test("simulateNow refuses a host that needs a turn of the event loop", () => {
  expect(() => simulateNow(scenarioOf(1), turningHost())).toThrow("use simulate()");
});

test("removing a fault does not change the other random draws", async () => {
  const scenario = { ...scenarioOf(1), faults: [] };
  const fault = { kind: "snapshot", atMs: 1, node: 0 } as const;
  const without = await outsideMicrotasks(() => simulateNow(scenario, host, { keepTrace: true }));
  const with_ = await outsideMicrotasks(() =>
    simulateNow({ ...scenario, faults: [fault] }, host, { keepTrace: true }),
  );
  const events = with_.trace.filter(({ kind }) => kind !== "fault");
  expect(events).toEqual(without.trace);
});
