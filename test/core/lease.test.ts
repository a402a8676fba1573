import { describe, expect, test } from "vitest";
import type { ExtendOutcome, ProveOutcome, ReleaseOutcome } from "../../src/core/store.ts";
import { createLocks, type Lease, LeaseLostError, type LockEvents } from "../../src/index.ts";
import { manualRuntime, settle } from "../../src/testing/index.ts";
import { deferred, delay, extended, failed, fakeStore, scene } from "./fake-store.ts";

const ttl = 1_000;

function lossOf(lease: Lease): LeaseLostError {
  const reason: unknown = lease.signal.reason;
  if (reason instanceof LeaseLostError) return reason;
  throw new Error("the lease is not lost");
}

describe("validity", () => {
  test("is counted from the moment before the attempt was sent", async () => {
    const { runtime, clock } = manualRuntime();
    const { store } = fakeStore(clock, {
      async attempt({ resources, owner }) {
        await delay(clock, 300);
        return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: 900 } };
      },
    });
    const locks = createLocks(store, { runtime, ttl });
    const acquiring = locks.acquire("a");
    await clock.advance(300);
    expect((await acquiring).remainingMs()).toBe(600);
    await locks.close();
  });

  test("a grant that arrives after its validity is refused, and released", async () => {
    const { runtime, clock } = manualRuntime();
    const { store, times } = fakeStore(clock, {
      async attempt({ resources, owner }) {
        await delay(clock, 899.5);
        return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: 900 } };
      },
    });
    const locks = createLocks(store, { runtime, ttl });
    const refused = expect(locks.acquire("a", { wait: 0 })).rejects.toMatchObject({
      code: "QUORUM",
    });
    await clock.advance(900);
    await refused;
    expect(times("release")).toEqual([899.5]);
    await locks.close();
  });

  test("is reported in whole milliseconds, rounded down", async () => {
    const { locks, clock } = scene({}, { ttl });
    const lease = await locks.acquire("a");
    await clock.advance(0.5);
    expect(lease.remainingMs()).toBe(999);
    await clock.advance(500);
    expect(lease.remainingMs()).toBe(499);
  });

  test("the signal aborts at the end at the latest, even if the lease is never looked at", async () => {
    const { locks, clock } = scene({}, { ttl });
    const lease = await locks.acquire("a");
    const abortedAt: number[] = [];
    lease.signal.addEventListener("abort", () => abortedAt.push(clock.monotonicMs()));
    await clock.advance(998.9);
    expect([lease.state, abortedAt]).toEqual(["held", []]);
    await clock.advance(1.1);
    expect(abortedAt).toEqual([999]);
    expect(lossOf(lease).reason).toBe("expired");
  });

  test("a timer that fires late by its slack still ends the lease in time", async () => {
    const { locks, clock } = scene({}, { ttl }, { timerSlackMs: 5 });
    const lease = await locks.acquire("a");
    const abortedAt: number[] = [];
    lease.signal.addEventListener("abort", () => abortedAt.push(clock.monotonicMs()));
    await clock.advance(1_000);
    expect(abortedAt).toEqual([994]);
  });
});

describe("the wall clock", () => {
  test("ends a lease if it is set forward past the end", async () => {
    const { locks, clock } = scene({}, { ttl: 10_000 });
    const lease = await locks.acquire("a");
    clock.stepWall(10_000);
    expect(lease.state).toBe("lost");
    expect(lossOf(lease).reason).toBe("clock");
  });

  test("aborts the signal as well, at the next check of the clocks", async () => {
    const { locks, clock } = scene({}, { ttl: 10_000 });
    const lease = await locks.acquire("a");
    const reasons: unknown[] = [];
    const { signal } = lease;
    signal.addEventListener("abort", () => reasons.push(lossOf(lease).reason));
    clock.stepWall(20_000);
    await clock.advance(1_000);
    expect(reasons).toEqual(["clock"]);
  });

  test("shortens the lease if it is set forward, but not past the end", async () => {
    const { locks, clock } = scene({}, { ttl: 10_000 });
    const lease = await locks.acquire("a");
    const abortedAt: number[] = [];
    lease.signal.addEventListener("abort", () => abortedAt.push(clock.monotonicMs()));
    clock.stepWall(5_000);
    await clock.advance(10_000);
    expect(abortedAt).toEqual([4_999]);
    expect(lossOf(lease).reason).toBe("clock");
  });

  test("in many small steps prolongs the lease by one undetected step at most", async () => {
    const { locks, clock } = scene({}, { ttl: 10_000 });
    const lease = await locks.acquire("a");
    const endMs = clock.wallMs() + 10_000;
    const lateMs: number[] = [];
    lease.signal.addEventListener("abort", () => lateMs.push(clock.wallMs() - endMs));
    for (let turn = 0; turn < 20; turn += 1) {
      clock.stepWall(4);
      await clock.advance(500);
    }
    expect(lateMs).toHaveLength(1);
    // One step that is not detected yet, and the gains since the last check of the clocks.
    expect(lateMs[0]).toBeLessThan(28);
  });

  test("does not prolong the lease if it is set back", async () => {
    const { locks, clock } = scene({}, { ttl });
    const lease = await locks.acquire("a");
    clock.stepWall(-3_600_000);
    expect(lease.remainingMs()).toBe(1_000);
    await clock.advance(999);
    expect(lease.state).toBe("lost");
    expect(lossOf(lease).reason).toBe("expired");
  });

  test("is not reported as the reason if it gained only a few milliseconds", async () => {
    const { locks, clock } = scene({}, { ttl });
    const lease = await locks.acquire("a");
    clock.stepWall(5);
    await clock.advance(995);
    expect(lease.state).toBe("lost");
    expect(lossOf(lease).reason).toBe("expired");
  });
});

describe("after a pause longer than the lease, the first look reports that it is lost:", () => {
  const lost = { code: "LEASE_LOST", reason: "expired" };
  const looks: Readonly<Record<string, (lease: Lease, signal: AbortSignal) => unknown>> = {
    state: (lease) => expect(lease.state).toBe("lost"),
    "remainingMs()": (lease) => expect(lease.remainingMs()).toBe(0),
    "assertHeld()": (lease) =>
      expect(() => lease.assertHeld()).toThrow(expect.objectContaining(lost)),
    "signal.aborted": (_, signal) => expect(signal.aborted).toBe(true),
    "signal.reason": (_, signal) => expect(signal.reason).toMatchObject(lost),
    "signal.throwIfAborted()": (_, signal) =>
      expect(() => signal.throwIfAborted()).toThrow(expect.objectContaining(lost)),
    "a signal not asked for before": (lease) => expect(lease.signal.aborted).toBe(true),
    "prove()": async (lease) => expect(await lease.prove()).toBe(false),
    "extend()": async (lease) => await expect(lease.extend()).rejects.toMatchObject(lost),
    "release()": async (lease) =>
      expect(await lease.release()).toEqual({ released: false, reason: "expired" }),
  };

  test.each(Object.keys(looks))("%s", async (name) => {
    const { locks, clock, times } = scene({}, { ttl });
    const lease = await locks.acquire("a", { renew: true });
    const signal = name === "a signal not asked for before" ? AbortSignal.abort() : lease.signal;
    clock.pause(5_000);
    await looks[name]?.(lease, signal);
    expect(times("extend")).toEqual([]);
    expect(lease.state).toBe("lost");
  });

  test("the end of using", async () => {
    const { locks, clock } = scene({}, { ttl });
    const using = locks.using("a", () => {
      clock.pause(5_000);
      return "done";
    });
    await expect(using).rejects.toMatchObject({ ...lost, result: "done" });
  });
});

test("a pause shorter than the lease leaves it held", async () => {
  const { locks, clock } = scene({}, { ttl });
  const lease = await locks.acquire("a");
  clock.pause(900);
  expect(lease.state).toBe("held");
  expect(lease.signal.aborted).toBe(false);
  expect(lease.remainingMs()).toBe(100);
});

describe("extend", () => {
  test("counts the new validity from the moment before it was sent", async () => {
    const reply = deferred<ExtendOutcome>();
    const { locks, clock } = scene({ extend: () => reply.promise }, { ttl });
    const lease = await locks.acquire("a");
    await clock.advance(500);
    const extending = lease.extend(2_000);
    await clock.advance(200);
    reply.resolve(extended(1_900));
    await extending;
    expect(lease.remainingMs()).toBe(1_700);
  });

  test("is refused if its reply comes after the end", async () => {
    const reply = deferred<ExtendOutcome>();
    const { locks, clock } = scene({ extend: () => reply.promise }, { ttl });
    const lease = await locks.acquire("a");
    const refused = expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
    // The timer for the end has not fired when the reply is read.
    clock.pause(999.5);
    reply.resolve(extended(30_000));
    await refused;
    expect([lease.state, lease.remainingMs()]).toEqual(["lost", 0]);
  });

  test("that fails leaves the validity unchanged, and the lease doubtful", async () => {
    const { locks, clock } = scene({ extend: async () => failed }, { ttl });
    const doubts: LockEvents["doubtful"][] = [];
    locks.on("doubtful", (event) => doubts.push(event));
    const lease = await locks.acquire("a");
    await clock.advance(400);
    await expect(lease.extend()).rejects.toBe(failed.error);
    await expect(lease.extend()).rejects.toBe(failed.error);
    expect([lease.state, lease.remainingMs()]).toEqual(["doubtful", 600]);
    expect(doubts).toMatchObject([{ remainingMs: 600, cause: failed.error }]);
    lease.assertHeld();
    await clock.advance(600);
    expect(lossOf(lease)).toMatchObject({ reason: "unreachable", cause: failed.error });
  });

  test("that succeeds makes a doubtful lease held again", async () => {
    const outcomes: ExtendOutcome[] = [failed, extended(1_000)];
    const { locks, clock } = scene(
      { extend: async () => outcomes.shift() ?? extended(1_000) },
      { ttl },
    );
    const lease = await locks.acquire("a");
    await expect(lease.extend()).rejects.toBe(failed.error);
    await lease.extend();
    expect(lease.state).toBe("held");
    await clock.advance(1_000);
    const { reason, cause } = lossOf(lease);
    expect([reason, cause]).toEqual(["expired", undefined]);
  });

  test("never shortens the validity, for any reply of the store", async () => {
    const { locks } = scene({ extend: async () => extended(100) }, { ttl });
    const lease = await locks.acquire("a");
    await lease.extend(100);
    expect(lease.remainingMs()).toBe(1_000);
  });

  test("of a lease that is gone reports that it was taken", async () => {
    const { locks } = scene({ extend: async () => ({ kind: "gone" }) }, { ttl });
    const lease = await locks.acquire("a");
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(lossOf(lease).reason).toBe("taken");
  });

  test("is sent one at a time, and not after a release", async () => {
    const replies = [deferred<ExtendOutcome>(), deferred<ExtendOutcome>()];
    let asked = -1;
    const { locks, times } = scene(
      { extend: () => replies[(asked += 1)]?.promise ?? Promise.reject(new Error("too many")) },
      { ttl },
    );
    const lease = await locks.acquire("a");
    const [first, second, third] = [lease.extend(), lease.extend(), lease.extend()];
    const released = { code: "LEASE_RELEASED" };
    const refused = Promise.all([
      expect(second).rejects.toMatchObject(released),
      expect(third).rejects.toMatchObject(released),
    ]);
    await settle();
    expect(times("extend")).toHaveLength(1);
    replies[0]?.resolve(extended(1_000));
    await first;
    await settle();
    expect(times("extend")).toHaveLength(2);
    await lease.release();
    replies[1]?.resolve(extended(1_000));
    await refused;
    expect(times("extend")).toHaveLength(2);
  });

  test("has no effect if the lease is released while it is under way", async () => {
    const reply = deferred<ExtendOutcome>();
    const { locks, clock } = scene({ extend: () => reply.promise }, { ttl });
    const lease = await locks.acquire("a");
    const refused = expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_RELEASED" });
    expect(await lease.release()).toEqual({ released: true });
    reply.resolve(extended(1_000));
    await refused;
    expect([lease.state, clock.pendingTimers]).toEqual(["released", 0]);
  });
});

describe("prove", () => {
  test("ends doubt", async () => {
    const { locks, clock } = scene({ extend: async () => failed }, { ttl });
    const lease = await locks.acquire("a");
    await expect(lease.extend()).rejects.toBe(failed.error);
    expect(await lease.prove()).toBe(true);
    expect(lease.state).toBe("held");
    await clock.advance(1_000);
    const { reason, cause } = lossOf(lease);
    expect([reason, cause]).toEqual(["expired", undefined]);
  });

  test("that finds the lease gone ends it", async () => {
    const { locks } = scene({ prove: async () => ({ kind: "gone" }) }, { ttl });
    const lease = await locks.acquire("a");
    expect(await lease.prove()).toBe(false);
    expect(lossOf(lease).reason).toBe("taken");
  });

  test("that fails rejects, and leaves the lease doubtful", async () => {
    const { locks } = scene({ prove: async () => failed }, { ttl });
    const lease = await locks.acquire("a");
    await expect(lease.prove()).rejects.toBe(failed.error);
    expect(lease.state).toBe("doubtful");
  });

  test("whose reply comes after the end proves nothing", async () => {
    const reply = deferred<ProveOutcome>();
    const { locks, clock } = scene({ prove: () => reply.promise }, { ttl });
    const lease = await locks.acquire("a");
    const proving = lease.prove();
    clock.pause(2_000);
    reply.resolve({ kind: "proven" });
    expect(await proving).toBe(false);
    expect(lease.state).toBe("lost");
  });
});

test("the release of a lost lease reports the loss, even if its key still exists", async () => {
  const { locks, clock, times } = scene({}, { ttl });
  const lease = await locks.acquire("a");
  await clock.advance(1_000);
  expect(await lease.release()).toEqual({ released: false, reason: "expired" });
  expect(times("release")).toHaveLength(1);
  expect(lease.state).toBe("lost");
});

test("a release that arrives after the end is expired, and does not fail the work", async () => {
  const reply = deferred<ReleaseOutcome>();
  const { locks, clock } = scene({ release: () => reply.promise }, { ttl });
  const released: LockEvents["released"][] = [];
  locks.on("released", (event) => released.push(event));
  const working = locks.using("a", { renew: false }, () => "done");
  await clock.advance(ttl + 100);
  reply.resolve({ released: false, reason: "taken" });
  expect(await working).toBe("done");
  expect(released).toMatchObject([{ released: false, reason: "expired" }]);
  await locks.close();
});

test("a release that finds the lease taken reports it", async () => {
  const { locks } = scene({ release: async () => ({ released: false, reason: "taken" }) }, { ttl });
  const released: LockEvents["released"][] = [];
  locks.on("released", (event) => released.push(event));
  const lease = await locks.acquire("a");
  expect(await lease.release()).toEqual({ released: false, reason: "taken" });
  expect(released).toMatchObject([{ released: false, reason: "taken" }]);
  await expect(locks.using("b", () => "done")).rejects.toMatchObject({
    code: "LEASE_LOST",
    reason: "taken",
    result: "done",
  });
});

test("a release that cannot be confirmed does not make finished work fail", async () => {
  const { locks } = scene(
    { release: async () => ({ released: false, reason: "unreachable" }) },
    { ttl },
  );
  expect(await locks.using("a", () => "done")).toBe("done");
});

test("the loss of a lease is reported once, with how long it was held", async () => {
  const { locks, clock } = scene({}, { ttl });
  const lost: LockEvents["lost"][] = [];
  locks.on("lost", (event) => lost.push(event));
  const lease = await locks.acquire("a", { label: "me" });
  await clock.advance(2_000);
  expect([lease.state, lease.state, lease.signal.aborted]).toEqual(["lost", "lost", true]);
  expect(lost).toMatchObject([
    { resources: ["a"], label: "me", fence: 7n, reason: "expired", heldMs: 999, cause: undefined },
  ]);
});

test("reading the fence throws if the store has no fences", async () => {
  const { locks } = scene({ fencing: false }, { ttl });
  const lease = await locks.acquire("a");
  expect(() => lease.fence).toThrow(expect.objectContaining({ code: "UNSUPPORTED" }));
});

describe("using whose work fails with the loss of a lease", () => {
  test("reports its own loss with the work's error as cause, if that is the loss of another lease", async () => {
    const { locks, clock } = scene({}, { ttl });
    const inner = new LeaseLostError(["b"], "taken");
    const call = locks.using("a", { renew: false }, () => {
      clock.pause(5_000);
      throw inner;
    });
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "LEASE_LOST", resources: ["a"], reason: "expired" });
    expect(error).toHaveProperty("cause", inner);
  });

  test("passes on the loss of another lease if its own lease is held", async () => {
    const { locks } = scene({}, { ttl });
    const inner = new LeaseLostError(["b"], "taken");
    await expect(locks.using("a", () => Promise.reject(inner))).rejects.toBe(inner);
  });

  test("reports both losses if two nested leases are lost", async () => {
    const { locks, clock } = scene({}, { ttl });
    const call = locks.using("a", { renew: false }, () =>
      locks.using("b", { renew: false }, (lease) => {
        clock.pause(5_000);
        lease.assertHeld();
      }),
    );
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ resources: ["a"], cause: { resources: ["b"] } });
  });

  test("passes on its own loss unchanged", async () => {
    const { locks, clock } = scene({}, { ttl });
    let own: unknown;
    const call = locks.using("a", { renew: false }, (lease) => {
      clock.pause(5_000);
      own = lease.signal.reason;
      lease.assertHeld();
    });
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toBe(own);
  });

  test("reports the last failed renewal as cause of a loss if the work returned", async () => {
    const { locks, clock } = scene({ extend: async () => failed }, { ttl });
    const call = locks.using("a", async () => {
      await clock.advance(5_000);
      return "done";
    });
    const error: unknown = await call.catch((thrown: unknown) => thrown);
    const expected = { reason: "unreachable", result: "done", cause: failed.error };
    expect(error).toMatchObject(expected);
  });
});
