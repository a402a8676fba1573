import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Locks, type Runtime } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { LoopStalls } from "../../src/runtime/stalls.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { collect } from "../support/redis-harness.ts";
import { codesOf, diagnose } from "./findings.ts";

watchLeaks();

function open(runtime: Runtime, ttl: number): Locks {
  const locks = createLocks(memory(), { runtime, ttl });
  onTestFinished(() => locks.close());
  return locks;
}

/** Returns a runtime that begins to measure the event loop now. */
function freshRuntime(): Runtime {
  const stalls = new LoopStalls(() => nodeRuntime.clock.monotonicMs());
  return { ...nodeRuntime, stalls };
}

function block(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

describe("a blocked event loop", () => {
  test("is reported with the loss of the lease, if it is detected in the same turn", async () => {
    const locks = open(freshRuntime(), 200);
    const lost = collect(locks, "lost");
    const lease = await locks.acquire("a");
    block(400);
    expect(lease.state).toBe("lost");
    expect(lost).toHaveLength(1);
    // The timer that should have fired by now was set for the end of the lease at the latest.
    expect(lost[0]?.stallMs).toBeGreaterThanOrEqual(150);
  });

  test("is reported with the loss of the lease, if it is detected after the turn", async () => {
    const locks = open(freshRuntime(), 1_000);
    const lost = collect(locks, "lost");
    await locks.acquire("a");
    // The measurement begins after a few turns of the event loop.
    await sleep(250);
    block(1_500);
    await sleep(250);
    expect(lost).toHaveLength(1);
    expect(lost[0]?.stallMs).toBeGreaterThanOrEqual(1_400);
  });

  test("that was over before the lease began is not reported with its loss", async () => {
    const runtime = freshRuntime();
    const locks = open(runtime, 200);
    await (await locks.acquire("a")).release();
    await sleep(250);
    block(1_300);
    await sleep(250);
    const oldMs = runtime.stalls?.maxMs(0) ?? 0;
    expect(oldMs).toBeGreaterThanOrEqual(1_100);
    const lost = collect(locks, "lost");
    await locks.acquire("b");
    await expect.poll(() => lost.length, { timeout: 10_000 }).toBe(1);
    expect(lost[0]?.stallMs).toBeLessThan(oldMs);
  });
});

describe("the doctor", () => {
  const stalled = (ms: number): Runtime => {
    return { ...nodeRuntime, stalls: { watch: () => undefined, maxMs: () => ms } };
  };

  test("compares measured stalls with the TTL", async () => {
    const short = await codesOf(open(stalled(300), 1_000));
    expect(short).toEqual([]);
    const long = await diagnose(open(stalled(400), 1_000), "event-loop-stall");
    expect(long).toMatchObject({ level: "warning" });
    expect(long.what).toContain("400 ms");
    const fatal = await diagnose(open(stalled(700), 1_000), "event-loop-stall");
    expect(fatal).toMatchObject({ level: "error" });
  });

  test("reports a real stall", async () => {
    const locks = open(freshRuntime(), 300);
    await (await locks.acquire("a")).release();
    await sleep(250);
    block(600);
    await sleep(250);
    expect(await diagnose(locks, "event-loop-stall")).toMatchObject({ level: "error" });
  });

  test("reports no stall if nothing is measured", async () => {
    const { clock, random, diagnostics } = nodeRuntime;
    expect(await codesOf(open({ clock, random, diagnostics }, 300))).toEqual([]);
  });
});

test("stalls are kept by time span, and the oldest spans are merged to limit memory", () => {
  let nowMs = 0;
  const stalls = new LoopStalls(() => nowMs);
  for (let span = 0; span < 500; span += 1) {
    stalls.watch();
    nowMs += 1_000;
  }
  expect(stalls.maxMs(0)).toBeGreaterThanOrEqual(0);
});

test("the measurement ends with the last manager, and begins again with the next lease", async () => {
  const runtime = freshRuntime();
  const [one, two] = [open(runtime, 1_000), open(runtime, 1_000)];
  await (await one.acquire("a")).release();
  await sleep(250);
  const stallOf = async (): Promise<number> => {
    block(400);
    await sleep(250);
    return runtime.stalls?.maxMs(0) ?? 0;
  };
  await one.close();
  expect(await stallOf()).toBeGreaterThanOrEqual(200);
  await two.close();
  expect(await stallOf()).toBe(0);
  const three = open(runtime, 1_000);
  await (await three.acquire("a")).release();
  await sleep(250);
  expect(await stallOf()).toBeGreaterThanOrEqual(200);
});
