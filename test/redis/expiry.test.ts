import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createLocks,
  type Lease,
  LeaseLostError,
  type Locks,
  QuorumError,
  type Runtime,
} from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { collect, rejection, shareRedis } from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";

const bench = shareRedis(3);
const key = "invoice:42";
const modes = [{ fencing: true }, { fencing: false }];

/**
 * Opens a manager whose clocks can be stopped, so that only the servers know that a lease is over.
 */
async function locksWithClock(
  store: RedisStoreOptions,
): Promise<{ locks: Locks; stop: () => void }> {
  const { clock } = nodeRuntime;
  let stoppedAt: { monotonicMs: number; wallMs: number } | undefined;
  const runtime: Runtime = {
    ...nodeRuntime,
    clock: {
      ...clock,
      monotonicMs: () => stoppedAt?.monotonicMs ?? clock.monotonicMs(),
      wallMs: () => stoppedAt?.wallMs ?? clock.wallMs(),
    },
  };
  const clients = await bench.connectAll();
  const locks = createLocks(redlock(clients, { admission: "off", ...store }), { runtime });
  onTestFinished(() => locks.close());
  return {
    locks,
    stop: () => {
      stoppedAt = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    },
  };
}

describe.each(modes)("with fencing $fencing", (mode) => {
  // Defect 7 of other libraries: an expired owner released the lock of the next one.
  test("an expired owner cannot release, extend or prove the next one's lock", async () => {
    const [ours, theirs] = [await bench.locks(3, mode), await bench.locks(3, mode)];
    const lease = await ours.acquire(key, { ttl: 200 });
    await bench.untilFree();
    const next = await theirs.acquire(key);
    const values = await bench.valuesEverywhere(key);
    expect(lease.state).toBe("lost");
    expect(lease.remainingMs()).toBe(0);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(await rejection(lease.extend())).toMatchObject({ reason: "expired" });
    expect(await lease.prove()).toBe(false);
    expect(await lease.release()).toEqual({ released: false, reason: "expired" });
    expect(await bench.values(key)).toEqual(values);
    expect(await next.prove()).toBe(true);
    expect(await next.release()).toEqual({ released: true });
  });

  test.each<[string, (lease: Lease) => Promise<unknown>, unknown]>([
    ["releases", (lease) => lease.release(), { released: false, reason: "taken" }],
    [
      "extends",
      (lease) => rejection(lease.extend("10s")),
      // For this client the servers' clocks have jumped ahead: the reason depends on what it
      // detects first.
      { reason: expect.stringMatching(/^(taken|clock)$/) as string },
    ],
    ["proves", async (lease) => ({ proven: await lease.prove() }), { proven: false }],
  ])("an owner whose clocks stand still %s in vain after the end", async (_, act, expected) => {
    const { locks, stop } = await locksWithClock(mode);
    const leases = [
      await locks.acquire(key, { ttl: 300 }),
      await locks.acquire("another", { ttl: 300 }),
    ];
    stop();
    await bench.untilFree();
    const next = await (await bench.locks(3, mode)).acquire(key);
    const values = await bench.valuesEverywhere(key);
    const expiries = async () =>
      await Promise.all(bench.servers.map((server) => server.command("PEXPIRETIME", key)));
    const expireAt = await expiries();
    // By its own clocks there is time left, so the nodes have to refuse.
    for (const lease of leases) expect(lease.remainingMs()).toBeGreaterThan(0);
    for (const lease of leases) expect(await act(lease)).toMatchObject(expected as object);
    // The other holder's key was not changed, and the free key was not created.
    expect(await bench.values(key)).toEqual(values);
    expect(await expiries()).toEqual(expireAt);
    expect(await bench.values("another")).toEqual([null, null, null]);
    await next.release();
  });

  // Defect 9 of other libraries: a failed extension deleted the lock that was still valid.
  test("a lease keeps its validity and its keys if an extension fails", async () => {
    const locks = await bench.locks(3, { ...mode, nodeTimeout: 60 });
    const doubts = collect(locks, "doubtful");
    const lease = await locks.acquire(key, { ttl: "20s" });
    const values = await bench.valuesEverywhere(key);
    const before = lease.remainingMs();
    bench.freeze(1, 2);
    expect(await rejection(lease.extend("25s"))).toBeInstanceOf(QuorumError);
    expect(lease.state).toBe("doubtful");
    expect(lease.signal.aborted).toBe(false);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(lease.remainingMs()).toBeLessThanOrEqual(before);
    expect(() => lease.assertHeld()).not.toThrow();
    expect(doubts).toHaveLength(1);
    bench.thaw(1, 2);
    expect(await bench.values(key)).toEqual(values);
    expect(await eventually(() => lease.prove())).toBe(true);
    expect(lease.state).toBe("held");
    expect(await lease.release()).toEqual({ released: true });
  });

  // Defects 5 and 16 of other libraries: still "held" seconds after its end.
  test.each([
    { renew: true, reason: "unreachable" },
    { renew: false, reason: "expired" },
  ])("a lease ends by its own clock if no node answers (renew: $renew)", async (given) => {
    const { renew, reason } = given;
    const locks = await bench.locks(3, { ...mode, nodeTimeout: 50 });
    const lost = collect(locks, "lost");
    const ttlMs = renew ? 1_500 : 600;
    const beganMs = performance.now();
    const lease = await locks.acquire(key, { ttl: ttlMs, renew });
    const aborted = new Promise<unknown>((resolve) => {
      lease.signal.addEventListener("abort", () => resolve(lease.signal.reason));
    });
    bench.freeze(0, 1, 2);
    const why = await aborted;
    // No node has answered yet: the servers are still frozen.
    expect(why).toBeInstanceOf(LeaseLostError);
    expect(why).toMatchObject({ reason });
    expect(lost).toMatchObject([{ reason }]);
    expect(performance.now() - beganMs).toBeGreaterThan(ttlMs / 2);
    expect(lease.remainingMs()).toBe(0);
    const released = lease.release();
    bench.thaw(0, 1, 2);
    expect(await released).toEqual({ released: false, reason });
    await bench.untilFree();
  });

  test("a lease that is over reports it at the first look, before any timer has run", async () => {
    const locks = await bench.locks(3, mode);
    const ttlMs = 300;
    const lease = await locks.acquire(key, { ttl: ttlMs });
    const { signal } = lease;
    const untilMs = performance.now() + ttlMs;
    while (performance.now() < untilMs);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ reason: "expired" });
    expect(() => signal.throwIfAborted()).toThrow(LeaseLostError);
    await bench.untilFree();
  });

  test("a lease is renewed for as long as the work takes", async () => {
    const locks = await bench.locks(3, mode);
    const ttlMs = 600;
    const result = await locks.using(key, { ttl: ttlMs }, async (lease) => {
      const untilMs = performance.now() + 2 * ttlMs;
      while (performance.now() < untilMs) await sleep(20);
      lease.assertHeld();
      return "done";
    });
    expect(result).toBe("done");
  });

  test.each([1, 3])("the loss of a lock flushed on %i nodes is detected", async (nodes) => {
    const locks = await bench.locks(nodes, mode);
    const lost = collect(locks, "lost");
    const flush = () => Promise.all(bench.servers.map((server) => server.command("FLUSHALL")));
    const proven = await locks.acquire(key);
    const extended = await locks.acquire("second");
    const released = await locks.acquire("third");
    await flush();
    expect(await proven.prove()).toBe(false);
    expect(proven.state).toBe("lost");
    expect(proven.signal.reason).toMatchObject({ reason: "taken" });
    expect(await rejection(extended.extend())).toMatchObject({ reason: "taken" });
    expect(await released.release()).toEqual({ released: false, reason: "taken" });
    expect(lost.map(({ reason }) => reason)).toEqual(["taken", "taken"]);
    const work = locks.using(key, async () => {
      await flush();
      return "unsafe";
    });
    const error = await rejection(work);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason: "taken", result: "unsafe" });
  });

  test.each([1, 3])(
    "a lock stays usable after the scripts of %i nodes were flushed",
    async (nodes) => {
      const locks = await bench.locks(nodes, mode);
      const flush = () =>
        Promise.all(bench.servers.map((server) => server.command("SCRIPT", "FLUSH")));
      for (let round = 0; round < 2; round += 1) {
        await flush();
        const lease = await locks.acquire([key, "second"], { wait: 0 });
        await flush();
        expect(await lease.prove()).toBe(true);
        await flush();
        await lease.extend();
        await flush();
        expect(await locks.inspect(key)).toMatchObject({ state: "held" });
        await flush();
        expect(await lease.release()).toEqual({ released: true });
        await bench.untilFree();
      }
    },
  );
});
