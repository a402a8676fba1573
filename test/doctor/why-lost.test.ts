import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildPrograms } from "../../scripts/build.mjs";
import { stallReport } from "../../src/core/time/stall-report.ts";
import { createLocks } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import type { Stalls } from "../../src/store.ts";
import { LoopStalls } from "../../src/runtime/stalls.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { collect } from "../support/redis-harness.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Returns a report on a lease that began 5 s ago, on clocks and stalls set by the test. */
function report(given: Partial<Record<"stall" | "gc" | "slept" | "wallAhead", number>>) {
  const stalls: Stalls = {
    watch: () => undefined,
    maxMs: () => given.stall ?? 0,
    maxGcMs: () => given.gc ?? 0,
    suspendedMs: () => given.slept ?? 0,
  };
  const clock = {
    ...nodeRuntime.clock,
    now: () => ({ monotonicMs: 10_000, steadyMs: 10_000 + (given.wallAhead ?? 0) }),
  };
  const began = { monotonicMs: 5_000, steadyMs: 5_000 };
  return stallReport({ clock, stalls, overdueMs: 0 }, began);
}

describe("the report of a loss", () => {
  test.each([
    [{}, undefined],
    [{ stall: 60, gc: 40 }, undefined],
    [{ stall: 800, gc: 20 }, "the event loop was blocked, or the process stopped, for 800 ms"],
    [{ stall: 800, gc: 700 }, "garbage collection stopped the process for 700 ms"],
    [{ wallAhead: 12_000, slept: 12_000 }, "the machine was suspended for about 12.0 s"],
    [{ wallAhead: 12_000 }, "the wall clock ran ahead by 12.0 s: it was set, or the machine slept"],
    // Slewed as NTP does it.
    [{ wallAhead: 20 }, undefined],
    [
      { slept: 5_000, stall: 300, gc: 250 },
      "the machine was suspended for about 5.0 s; garbage collection stopped the process for 250 ms",
    ],
  ])("explains %j in words", (given, why) => {
    expect(report(given).why).toBe(why);
  });

  test("has the times as numbers", () => {
    const reported = report({ stall: 800.4, gc: 700.2, slept: 1_500 });
    expect(reported).toMatchObject({ stallMs: 800, gcMs: 700, suspendedMs: 1_500 });
    expect(report({ slept: 900 }).suspendedMs).toBe(0);
  });
});

test("a suspension is time since boot that the process's own clock did not count", () => {
  const times = { nowMs: 0, bootMs: 1_000_000 };
  const stalls = new LoopStalls(
    () => times.nowMs,
    () => times.bootMs,
  );
  const pass = (ms: number, sleptMs = 0): void => {
    times.nowMs += ms;
    times.bootMs += ms + sleptMs;
  };
  expect(stalls.suspendedMs(0)).toBe(0);
  stalls.watch();
  pass(1_000, 30_000);
  stalls.watch();
  const beganMs = times.nowMs;
  expect(stalls.suspendedMs(0)).toBe(30_000);
  pass(500);
  // An earlier suspension is not reported for a later lease.
  expect(stalls.suspendedMs(beganMs)).toBe(0);
  pass(500, 7_000);
  expect(stalls.suspendedMs(beganMs)).toBe(7_000);
});

test("blocking work is reported as the reason for a loss", async () => {
  const stalls = new LoopStalls(() => nodeRuntime.clock.monotonicMs());
  const locks = createLocks(memory(), { runtime: { ...nodeRuntime, stalls }, ttl: 1_000 });
  onTestFinished(() => locks.close());
  const lost = collect(locks, "lost");
  await locks.acquire("a");
  // The measurement begins after a few turns of the event loop.
  await sleep(250);
  const untilMs = performance.now() + 1_500;
  while (performance.now() < untilMs);
  await expect.poll(() => lost.length).toBe(1);
  expect(lost[0]?.why).toMatch(/^the event loop was blocked, or the process stopped, for \d+ ms$/);
});

/** Runs in its own process, with `gc()` and a heap that takes long to collect. */
const collecting = `
import { createLocks } from "./dist/index.js";
import { memory } from "./dist/stores/memory/index.js";
const heap = Array.from({ length: 3_000_000 }, (_, index) => ({ index, next: { index } }));
const collect = () => {
  const beganMs = performance.now();
  globalThis.gc();
  return performance.now() - beganMs;
};
// The lease's own timer is late because of it, but not by much.
const ttl = Math.max(50, Math.round(collect() * 0.6));
const locks = createLocks(memory(), { ttl });
let reported;
locks.on("lost", ({ why, gcMs, stallMs }) => (reported = { why, gcMs, stallMs }));
for (let round = 0, tries = 0; round < 3 && tries < 30; tries += 1) {
  reported = undefined;
  const before = await locks.acquire("a", { ttl: 1_000 });
  await new Promise((resolve) => setTimeout(resolve, 100));
  await before.release();
  const lease = await locks.acquire("a");
  // In the timers phase, where the lease's own timer is next.
  if (round === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  // A busy machine may have kept the process waiting for longer than that already.
  const isHeld = lease.state === "held";
  const isOutlived = collect() > ttl;
  await new Promise((resolve) => setTimeout(resolve, 2 * ttl));
  if (!isHeld || !isOutlived) continue;
  console.log(JSON.stringify(reported));
  round += 1;
}
console.log(heap.length > 0 ? "end" : "");
await locks.close();
`;

test("a garbage collection is reported as the reason for a loss", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-gc-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await buildPrograms(join(folder, "dist"));
  const script = join(folder, "collecting.mjs");
  writeFileSync(script, collecting);
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--expose-gc", script], {
    cwd: root,
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const lines = stdout.trim().split("\n");
  expect(lines.at(-1)).toBe("end");
  const reported = lines
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { why: string; gcMs: number });
  expect(reported).toHaveLength(3);
  for (const { why, gcMs } of reported) {
    expect(gcMs).toBeGreaterThanOrEqual(50);
    expect(why).toBe(`garbage collection stopped the process for ${gcMs} ms`);
  }
});
