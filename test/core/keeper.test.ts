import { describe, expect, test } from "vitest";
import type { ExtendOutcome } from "../../src/core/store.ts";
import type { LeaseLostError, LockEvents } from "../../src/index.ts";
import { deferred, delay, extended, failed, scene } from "./fake-store.ts";

const ttl = 3_000;
const renew = true;

/** Returns the differences between successive times. */
function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
}

describe("renewal", () => {
  test("is sent after every third of the TTL", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew });
    const lease = await locks.acquire("a");
    await clock.advance(4_500);
    expect(times("extend")).toEqual([1_000, 2_000, 3_000, 4_000]);
    expect([lease.state, lease.remainingMs()]).toEqual(["held", 2_500]);
    await locks.close();
  });

  test("keeps an interval that is much shorter than the TTL", async () => {
    const { locks, clock, times } = scene({}, { ttl: 20_000, renew: 100 });
    await locks.acquire("a");
    await clock.advance(1_000);
    expect(gaps(times("extend"))).toEqual(Array.from({ length: 9 }, () => 100));
    await locks.close();
  });

  test("is not sent unless it is requested", async () => {
    const { locks, clock, times } = scene({}, { ttl });
    const lease = await locks.acquire("a");
    await clock.advance(3_000);
    expect([times("extend"), lease.state]).toEqual([[], "lost"]);
  });

  test("is due an interval after the last one was sent, not after its reply", async () => {
    const { locks, clock, times } = scene(
      {
        async extend() {
          await delay(clock, 600);
          return extended(3_000);
        },
      },
      { ttl, renew },
    );
    await locks.acquire("a");
    await clock.advance(4_000);
    expect(times("extend")).toEqual([1_000, 2_000, 3_000, 4_000]);
    await clock.advance(600);
    await locks.close();
  });

  test("that fails is repeated after pauses, until it succeeds", async () => {
    let away = true;
    const { locks, clock, times } = scene(
      { extend: async (_, ttlMs) => (away ? failed : extended(ttlMs)) },
      { ttl, renew },
    );
    const reported: string[] = [];
    locks.on("doubtful", () => reported.push("doubtful"));
    locks.on("renewed", () => reported.push("renewed"));
    const lease = await locks.acquire("a");
    await clock.advance(2_000);
    expect(lease.state).toBe("doubtful");
    const spacing = gaps(times("extend"));
    expect(spacing.length).toBeGreaterThanOrEqual(2);
    for (const gapMs of spacing) {
      expect(gapMs).toBeGreaterThanOrEqual(225);
      expect(gapMs).toBeLessThanOrEqual(375);
    }
    expect(new Set(spacing).size).toBe(spacing.length);
    away = false;
    await clock.advance(400);
    expect(lease.state).toBe("held");
    expect(reported).toEqual(["doubtful", "renewed"]);
    await locks.close();
  });

  test("that never succeeds makes the lease end with its validity", async () => {
    const { locks, clock, times } = scene({ extend: async () => failed }, { ttl, renew });
    const lost: LockEvents["lost"][] = [];
    locks.on("lost", (event) => lost.push(event));
    await locks.acquire("a");
    await clock.advance(10_000);
    expect(lost).toMatchObject([{ reason: "unreachable", heldMs: 2_999, cause: failed.error }]);
    expect(Math.max(...times("extend"))).toBeLessThan(2_999);
    expect(clock.pendingTimers).toBe(0);
  });

  test("that is never answered makes the lease end with its validity", async () => {
    const { locks, clock, times } = scene(
      { extend: () => deferred<ExtendOutcome>().promise },
      { ttl, renew },
    );
    const lease = await locks.acquire("a");
    const abortedAt: number[] = [];
    lease.signal.addEventListener("abort", () => abortedAt.push(clock.monotonicMs()));
    await clock.advance(10_000);
    expect(abortedAt).toEqual([2_999]);
    expect(times("extend")).toEqual([1_000]);
  });

  test("that finds the lease gone ends it at once", async () => {
    const { locks, clock, times } = scene(
      { extend: async () => ({ kind: "gone" }) },
      { ttl, renew },
    );
    const lease = await locks.acquire("a");
    await clock.advance(1_000);
    expect(lease.state).toBe("lost");
    expect((lease.signal.reason as LeaseLostError).reason).toBe("taken");
    await clock.advance(5_000);
    expect(times("extend")).toEqual([1_000]);
  });

  test("that throws causes no unhandled rejection, and is repeated", async () => {
    let broken = true;
    const { locks, clock, times } = scene(
      {
        async extend(_, ttlMs) {
          if (broken) throw new Error("a driver that does not keep its word");
          return extended(ttlMs);
        },
      },
      { ttl, renew },
    );
    const lease = await locks.acquire("a");
    await clock.advance(1_100);
    broken = false;
    await clock.advance(3_000);
    expect(lease.state).toBe("held");
    expect(times("extend").length).toBeGreaterThanOrEqual(3);
    await locks.close();
  });

  test("stops with the release, even if one is under way", async () => {
    const reply = deferred<ExtendOutcome>();
    const { locks, clock, times } = scene({ extend: () => reply.promise }, { ttl, renew });
    const lease = await locks.acquire("a");
    await clock.advance(1_500);
    await lease.release();
    expect(clock.pendingTimers).toBe(0);
    reply.resolve(extended(3_000));
    await clock.advance(10_000);
    expect(times("extend")).toEqual([1_000]);
    expect([lease.state, clock.pendingTimers]).toEqual(["released", 0]);
  });

  test("is not sent twice, even if the clocks step while one is under way", async () => {
    const reply = deferred<ExtendOutcome>();
    const { locks, clock, times } = scene({ extend: () => reply.promise }, { ttl: 9_000, renew });
    await locks.acquire("a");
    await clock.advance(3_000);
    clock.stepWall(-500);
    await clock.advance(1_500);
    reply.resolve(extended(9_000));
    await clock.advance(500);
    expect(times("extend")).toEqual([3_000]);
    await locks.close();
  });

  test("ends exactly at maxHold", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew, maxHold: 7_500 });
    const lost: LockEvents["lost"][] = [];
    locks.on("lost", (event) => lost.push(event));
    const lease = await locks.acquire("a");
    await clock.advance(7_000);
    expect(lease.remainingMs()).toBe(500);
    await clock.advance(5_000);
    expect(lost).toMatchObject([{ reason: "max-hold", heldMs: 7_499 }]);
    expect(times("extend").at(-1)).toBe(7_000);
  });

  test("is limited by maxHold, and so is an extension by the user", async () => {
    const { locks } = scene({}, { ttl, maxHold: 5_000 });
    const lease = await locks.acquire("a");
    await lease.extend(60_000);
    expect(lease.remainingMs()).toBe(5_000);
  });

  test("is put off by an extension of the user", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew });
    const lease = await locks.acquire("a");
    await clock.advance(900);
    await lease.extend();
    // By half the interval or more: the lease gets a new phase within the interval.
    await clock.advance(499);
    expect(times("extend")).toEqual([900]);
    await clock.advance(501);
    expect(times("extend")).toHaveLength(2);
    await clock.advance(1_000);
    expect(gaps(times("extend")).at(-1)).toBe(1_000);
    await locks.close();
  });

  test("of many leases acquired together is spread over the interval", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew });
    const names = Array.from({ length: 1_000 }, (_, index) => `name ${index}`);
    await Promise.all(names.map((name) => locks.acquire(name)));
    await clock.advance(499);
    expect(times("extend")).toEqual([]);
    await clock.advance(501);
    // Each lease once, in groups of those that are due within a hundredth of the TTL.
    const first = times("extend");
    expect(first).toHaveLength(1_000);
    expect(greatestGroup(first)).toBeLessThan(100);
    await clock.advance(1_000);
    expect(times("extend")).toHaveLength(2_000);
    expect(greatestGroup(times("extend").slice(1_000))).toBeLessThan(100);
    await locks.close();
  });

  test("is spread again after a stall made many of them due together", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew });
    const names = Array.from({ length: 1_000 }, (_, index) => `name ${index}`);
    await Promise.all(names.map((name) => locks.acquire(name)));
    clock.pause(1_700);
    await clock.advance(0);
    expect(greatestGroup(times("extend"))).toBe(1_000);
    await clock.advance(1_000);
    expect(greatestGroup(times("extend").slice(1_000))).toBeLessThan(100);
    await locks.close();
  });
});

/** Returns the greatest number of renewals at one moment. */
function greatestGroup(times: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const atMs of times) counts.set(atMs, (counts.get(atMs) ?? 0) + 1);
  return Math.max(...counts.values());
}

describe("timers", () => {
  test("thousands of leases share one timer, which does not keep the process alive", async () => {
    const { locks, clock, times } = scene({}, { ttl, renew });
    const count = 5_000;
    const names = Array.from({ length: count }, (_, index) => `name ${index}`);
    const leases = await Promise.all(names.map((name) => locks.acquire(name)));
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    await clock.advance(2_000);
    expect(times("extend")).toHaveLength(2 * count);
    expect(leases.every(({ state }) => state === "held")).toBe(true);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    await locks.close();
    expect(clock.pendingTimers).toBe(0);
  });

  test("a wait keeps the process alive while it lasts", async () => {
    const { locks, clock } = scene(
      { attempt: async () => ({ kind: "held", holder: undefined, cleanup: undefined }) },
      { ttl },
    );
    const refused = expect(locks.acquire("a", { wait: 500 })).rejects.toMatchObject({
      code: "ACQUIRE_TIMEOUT",
    });
    await clock.advance(499);
    expect(clock.keepingAlive).toBe(1);
    await clock.advance(1);
    await refused;
    expect(clock.pendingTimers).toBe(0);
  });
});
