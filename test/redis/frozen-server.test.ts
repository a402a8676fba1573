import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type LockOptions, type Locks, QuorumError } from "../../src/index.ts";
import { redis, redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { rejection, shareRedis } from "../support/redis-harness.ts";
import { nodeTimeoutMs } from "../../src/stores/redis/protocol/store-settings.ts";

const bench = shareRedis(3);
const key = "invoice:42";
const options: RedisStoreOptions = { admission: "off", maxTtl: "1h" };

interface Scene {
  readonly locks: Locks;
  readonly clock: ManualClock;
}

/** Opens a manager on real servers with a manual clock, and lets them connect. */
async function open(nodes: number): Promise<Scene> {
  const { runtime, clock } = manualRuntime();
  const clients = await bench.connectAll(nodes);
  const [only] = clients;
  const store =
    nodes === 1 && only !== undefined ? redis(only, options) : redlock(clients, options);
  const locks = createLocks(store, { runtime });
  onTestFinished(async () => {
    for (let index = 0; index < nodes; index += 1) bench.thaw(index);
    const closed = locks.close();
    await clock.advance(10_000);
    await closed;
    await bench.untilFree();
  });
  await (await locks.acquire("first")).release();
  return { locks, clock };
}

function freeze(nodes: number): void {
  for (let index = 0; index < nodes; index += 1) bench.freeze(index);
}

/** Returns the time on the manual clock until the call settles. No reply comes meanwhile. */
async function msUntilSettled(clock: ManualClock, call: Promise<unknown>): Promise<number> {
  const seen = { settled: false };
  const settled = call.finally(() => (seen.settled = true));
  settled.catch(() => undefined);
  const startedMs = clock.monotonicMs();
  for (let step = 0; step < 2_000 && !seen.settled; step += 1) await clock.advance(50);
  return clock.monotonicMs() - startedMs;
}

describe("on a frozen server", () => {
  const calls: [string, LockOptions & { wait?: LockOptions["wait"] }, number][] = [
    ["a TTL of 1 s", { ttl: "1s", wait: 0 }, 200],
    ["the default TTL", { wait: 0 }, 1_000],
    ["a TTL of a minute", { ttl: "60s", wait: 0 }, 1_000],
    ["a TTL of an hour", { ttl: "1h", wait: 0 }, 1_000],
    ["a wait of 300 ms", { wait: 300 }, 1_300],
    ["a wait of 1 s", { wait: "1s" }, 2_000],
  ];

  test.each(calls)("acquire with %s ends in time", async (_what, given, atMost) => {
    const { locks, clock } = await open(1);
    freeze(1);
    const call = rejection(locks.acquire(key, given));
    expect(await msUntilSettled(clock, call)).toBeLessThanOrEqual(atMost);
    expect(await call).toBeInstanceOf(QuorumError);
  });

  test("tryAcquire ends with the node timeout, and a late grant is released", async () => {
    const { locks, clock } = await open(1);
    freeze(1);
    const call = rejection(locks.tryAcquire(key, { ttl: "60s" }));
    expect(await msUntilSettled(clock, call)).toBe(1_000);
    expect(String(await call)).toContain("no answer within 1000 ms");
    bench.thaw(0);
    await bench.untilFree();
  });

  test("a majority of three ends with its own timeout, 5 % of the TTL", async () => {
    const { locks, clock } = await open(3);
    freeze(3);
    const call = rejection(locks.acquire(key, { wait: 0 }));
    expect(await msUntilSettled(clock, call)).toBe(500);
    const { votes } = (await call) as QuorumError;
    for (const { cause } of votes) expect(String(cause)).toContain("no answer within 500 ms");
  });

  test.each([1, 3])("an aborted call of %i nodes settles before any reply", async (nodes) => {
    const { locks, clock } = await open(nodes);
    freeze(nodes);
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("the caller has changed its mind");
    const calls = [
      locks.acquire(key, { wait: "forever", signal }),
      locks.tryAcquire("other", { signal }),
      locks.using("third", { wait: "1h", signal }, () => "never"),
    ];
    await settle();
    controller.abort(reason);
    for (const call of calls) expect(await rejection(call)).toBe(reason);
    // No time has passed and no server has answered, so the clean-up is still pending.
    expect(clock.pendingTimers).toBeGreaterThan(0);
    for (let index = 0; index < nodes; index += 1) bench.thaw(index);
    await bench.untilFree();
  });

  test("close rejects waiting calls at once, and waits for the clean-up", async () => {
    const { locks, clock } = await open(1);
    const holder = await bench.locks(1);
    const lease = await holder.acquire(key);
    const waiting = rejection(locks.acquire(key, { wait: "forever" }));
    await eventually(async () => ((await holder.inspect(key)).waiters ?? 0) > 0);
    freeze(1);
    let isClosed = false;
    const closing = locks.close().then(() => (isClosed = true));
    expect(await waiting).toMatchObject({ code: "CLOSED" });
    await settle();
    expect(isClosed).toBe(false);
    await clock.advance(10_000);
    await closing;
    bench.thaw(0);
    await lease.release();
  });
});

test("the node timeout is long enough for the replicas that a reply waits for", () => {
  const slow = resolveStoreOptions({ replicas: { acks: 1, timeout: "900ms" } }, 1);
  expect([2_000, 10_000, 60_000].map((ttlMs) => nodeTimeoutMs(slow, ttlMs))).toEqual([
    400, 1_800, 1_800,
  ]);
  const given = resolveStoreOptions({ nodeTimeout: "4s" }, 1);
  expect(nodeTimeoutMs(given, 1_000)).toBe(4_000);
  const quorum = resolveStoreOptions({}, 5);
  expect([100, 10_000, 60_000].map((ttlMs) => nodeTimeoutMs(quorum, ttlMs))).toEqual([
    50, 500, 1_000,
  ]);
});

test("a wait that has ended leaves the queue afterwards", async () => {
  const { locks, clock } = await open(1);
  const holder = await bench.locks(1);
  const lease = await holder.acquire(key);
  const waiting = rejection(locks.acquire(key, { wait: "5s" }));
  await eventually(async () => ((await holder.inspect(key)).waiters ?? 0) > 0);
  freeze(1);
  expect(await msUntilSettled(clock, waiting)).toBeLessThanOrEqual(6_000);
  bench.thaw(0);
  await eventually(async () => (await holder.inspect(key)).waiters === 0);
  await lease.release();
});
