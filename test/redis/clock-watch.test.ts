import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { compileClockLibrary } from "../../faults/clock-library.ts";
import { NodeServer } from "../../faults/node-server.ts";
import { steadyClock } from "../../src/core/time/instant.ts";
import { LeaseLostError } from "../../src/index.ts";
import { ClockWatch } from "../../src/core/time/clock-watch.ts";
import { stampOf } from "../../src/stores/redis/node/stamp.ts";
import { collect, connect, openLocks, rejection } from "../support/redis-harness.ts";
import { required } from "../support/requirements.ts";

const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** Returns a client and a server whose clocks the test sets. */
function bench() {
  const times = { monotonicMs: 1_000, wallMs: 5_000_000, serverMs: 9_000_000 };
  const clock = {
    monotonicMs: () => times.monotonicMs,
    wallMs: () => times.wallMs,
    setTimer: () => () => undefined,
    timerSlackMs: 0,
  };
  const steady = steadyClock(clock);
  const watch = new ClockWatch(steady, { factor: 0.01, fixedMs: 2 });
  const pass = (ms: number): void => {
    times.monotonicMs += ms;
    times.wallMs += ms;
    times.serverMs += ms;
  };
  /** Simulates a round trip of `tripMs`, answered half-way. Returns the step that was found. */
  const trip = (tripMs = 2, runId = "aaaaaaaaaaaa"): number => {
    const sent = steady.now();
    pass(tripMs / 2);
    const { serverMs } = times;
    pass(tripMs / 2);
    return watch.observe({ runId, serverMs }, sent);
  };
  return { times, pass, trip };
}

describe("a server's clock", () => {
  test.each([60_000, 500, -500, -60_000])("that steps by %i ms is noticed once", (stepMs) => {
    const { times, pass, trip } = bench();
    expect(trip()).toBe(0);
    pass(1_000);
    times.serverMs += stepMs;
    expect(trip()).toBe(stepMs);
    expect(trip()).toBe(0);
  });

  test("may drift within the allowance, and a slow reply proves nothing", () => {
    const { times, pass, trip } = bench();
    expect(trip()).toBe(0);
    pass(1_000);
    times.serverMs += 9;
    expect(trip()).toBe(0);
    times.serverMs += 40;
    // Half of the 100 ms may be the time of the request alone.
    expect(trip(100)).toBe(0);
  });

  test("is still compared with the last precise reply after a slow one", () => {
    const { times, pass, trip } = bench();
    expect(trip()).toBe(0);
    pass(1_000);
    expect(trip(1_000)).toBe(0);
    times.serverMs += 300;
    // Compared with the slow reply, which may be wrong by 500 ms, it would be no step.
    expect(trip()).toBe(300);
  });

  test("starts anew after a restart", () => {
    const { times, trip } = bench();
    expect(trip()).toBe(0);
    times.serverMs += 60_000;
    expect(trip(2, "bbbbbbbbbbbb")).toBe(0);
    expect(trip(2, "bbbbbbbbbbbb")).toBe(0);
  });

  test.each([
    ["this machine slept", { monotonicMs: 0, wallMs: 30_000, serverMs: 30_000 }],
    ["this machine's clock was set", { monotonicMs: 0, wallMs: 30_000, serverMs: 0 }],
  ])("is not considered to have stepped when %s", (_, by) => {
    const { times, trip } = bench();
    expect(trip()).toBe(0);
    times.wallMs += by.wallMs;
    times.serverMs += by.serverMs;
    expect(trip()).toBe(0);
  });

  test("is read from replies with a time stamp, and from no others", () => {
    const stamp = { runId: "0123456789ab", serverMs: 1_790_000_000_500 };
    expect(stampOf("S 1790000000 500000 0123456789ab\nG 17")).toEqual(stamp);
    expect(stampOf("S 1790000000 500000 0123456789ab\nR 1 1\nK")).toEqual(stamp);
    for (const reply of [
      "-\nR 1 1",
      "S x y z\nG",
      "S 1790000000 500000",
      "F 0",
      null,
      7,
      [],
      ["K"],
    ]) {
      expect(stampOf(reply)).toBeUndefined();
    }
  });
});

test("a lease is held while the clocks of a quorum are steady, and lost otherwise", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-clocks-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const library = required(context, "gcc", compileClockLibrary(projectRoot, folder));
  const servers = await Promise.all(
    [1, 2, 3].map((number) => NodeServer.start(join(folder, String(number)), library)),
  );
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.kill()));
  });
  const clients = await Promise.all(servers.map(({ port }) => connect(port)));
  const locks = openLocks(clients, { admission: "off" }, { ttl: "20s" });
  const jumps = collect(locks, "clock-jump");
  const losses = collect(locks, "lost");
  // Several rounds, so that all three nodes have taken part.
  for (let round = 0; round < 5; round += 1) await (await locks.acquire("warm")).release();
  const lease = await locks.acquire("invoice:42");
  await expect.poll(async () => (await locks.inspect("invoice:42")).nodes.length).toBe(3);

  servers[0]?.setClock(60_000);
  // Node 1 has dropped the key, and its vote does not count. The other two still have the key.
  await expect.poll(() => lease.prove()).toBe(true);
  await expect.poll(async () => (await lease.prove(), jumps.length)).toBe(1);
  expect(jumps[0]).toMatchObject({ node: "node-1" });
  expect(Math.round((jumps[0]?.stepMs ?? 0) / 1_000)).toBe(60);
  expect(lease.state).toBe("held");

  servers[1]?.setClock(60_000);
  expect(await rejection(lease.extend())).toBeInstanceOf(LeaseLostError);
  expect(lease.state).toBe("lost");
  expect(losses).toHaveLength(1);

  // A step back prolongs keys, so no lease is lost.
  const next = await locks.acquire("invoice:42");
  servers[2]?.setClock(-60_000);
  await expect.poll(async () => (await next.prove(), jumps.length)).toBeGreaterThanOrEqual(3);
  expect(next.state).toBe("held");
  await next.release();
  await locks.close();
});
