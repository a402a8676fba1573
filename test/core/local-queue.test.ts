import { describe, expect, test } from "vitest";
import type { AcquireTimeoutError, Lease } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { lockTable, note } from "./lock-table.ts";

describe("the queue of one manager", () => {
  test("is served in the order of the calls, at each release and without a pause", async () => {
    const { locks, clock, asked } = lockTable();
    const holder = await locks.acquire("a");
    const served: number[] = [];
    const waiting = Array.from({ length: 20 }, async (_, index) => {
      // The first call waits before the others come: it is the only one that makes two attempts.
      if (index > 0) await settle();
      const lease = await locks.acquire("a");
      served.push(index);
      await lease.release();
    });
    await settle();
    await settle();
    expect(asked()).toBe(2);
    await holder.release();
    await Promise.all(waiting);
    expect(served).toEqual(Array.from({ length: 20 }, (_, index) => index));
    // One attempt for each call, and a second one for the first.
    expect([asked(), clock.monotonicMs(), clock.pendingTimers]).toEqual([2 + 20, 0, 0]);
    await locks.close();
  });

  test("makes no attempt while a lease of the same manager holds the resource", async () => {
    const { locks, clock, asked } = lockTable();
    const first = await locks.acquire("a", { ttl: "60s", renew: true, maxHold: "3h" });
    const waiting = [locks.acquire("a"), settle().then(() => locks.acquire("a", { renew: true }))];
    await settle();
    await first.release();
    const second = await waiting[0];
    const before = asked();
    const third = locks.acquire("a");
    await clock.advance(9_000);
    expect(asked()).toBe(before);
    await second?.release();
    await (await waiting[1])?.release();
    await (await third).release();
    await locks.close();
  });

  test("of one resource does not delay another", async () => {
    const { locks } = lockTable();
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a");
    await settle();
    const other = await locks.acquire("b");
    expect(other.state).toBe("held");
    await holder.release();
    await (await waiting).release();
    await locks.close();
  });

  test("wakes the next call when a lease is lost", async () => {
    const { locks, clock, entries } = lockTable();
    const done: string[] = [];
    const first = await locks.acquire("a", { ttl: 1_000 });
    // One more call waits, so that the queue is not empty when the lease is lost.
    const calls = [note(done, "second", locks.acquire("a", { ttl: 1_000 }))];
    await settle();
    calls.push(note(done, "third", locks.acquire("a")));
    // The store has forgotten the lock, and the manager has not detected that.
    entries.clear();
    await clock.advance(900);
    expect([first.state, done]).toEqual(["held", []]);
    await clock.advance(100);
    expect([first.state, done]).toEqual(["lost", ["second"]]);
    entries.clear();
    await clock.advance(1_000);
    expect(done).toEqual(["second", "third"]);
    await locks.close();
    await Promise.all(calls);
  });

  test("does not change when a lease that was lost before is released", async () => {
    const { locks, clock, asked, entries } = lockTable();
    const lost = await locks.acquire("a", { ttl: 1_000 });
    const second = locks.acquire("a");
    await settle();
    const third = locks.acquire("a");
    entries.clear();
    await clock.advance(1_000);
    const holder = await second;
    const before = asked();
    await lost.release();
    await settle();
    expect([holder.state, asked()]).toEqual(["held", before]);
    await holder.release();
    await (await third).release();
    await locks.close();
  });

  test("of each resource is woken when a lease on several resources is released", async () => {
    const { locks } = lockTable();
    const both = await locks.acquire(["a", "b"]);
    const waiting = ["a", "b", "a"].map((name) => locks.acquire(name));
    await settle();
    await both.release();
    const [a, b] = await Promise.all(waiting.slice(0, 2));
    await Promise.all([a?.release(), b?.release()]);
    await (await waiting[2])?.release();
    await locks.close();
  });
});

describe("leaving the queue", () => {
  async function lineOf(names: readonly string[], options: Record<string, object> = {}) {
    const table = lockTable();
    const done: string[] = [];
    const holder = await table.locks.acquire("a", { label: "the holder" });
    const calls: Promise<unknown>[] = [];
    for (const name of names) {
      calls.push(note(done, name, table.locks.acquire("a", options[name] ?? {})));
      await settle();
    }
    return { ...table, done, holder, calls };
  }

  async function serveAll(calls: readonly Promise<unknown>[]) {
    for (const call of calls) {
      const end = await call;
      if (!(end instanceof Error)) await (end as Lease).release();
    }
  }

  test("by a signal or a timeout, also at the front, keeps the order of the others", async () => {
    const controllers = [new AbortController(), new AbortController()] as const;
    const [front, middle] = controllers;
    const { done, holder, calls, clock, locks } = await lineOf(["1", "2", "3", "4", "5"], {
      "1": { signal: front.signal },
      "2": { wait: 500 },
      "4": { signal: middle.signal },
    });
    middle.abort(new DOMException("enough", "Enough"));
    await settle();
    await clock.advance(500);
    front.abort(new DOMException("enough", "Enough"));
    await settle();
    expect(done).toEqual(["4: Enough", "2: AcquireTimeoutError", "1: Enough"]);
    await holder.release();
    await serveAll(calls);
    expect(done.slice(3)).toEqual(["3", "5"]);
    await locks.close();
    expect(clock.pendingTimers).toBe(0);
  });

  test("at the front makes the next call attempt at once", async () => {
    const controller = new AbortController();
    const { entries, done, locks, clock } = await lineOf(["1", "2"], {
      "1": { signal: controller.signal },
    });
    // The lock is free, and no waiter is notified, as after a release by another library.
    entries.clear();
    controller.abort(new DOMException("enough", "Enough"));
    await settle();
    expect([done, clock.monotonicMs()]).toEqual([["1: Enough", "2"], 0]);
    await locks.close();
  });

  test("without an attempt of its own, a call reports the holder that others saw", async () => {
    const { calls, clock, entries, locks, asked } = await lineOf(["1", "2"], {
      "2": { wait: 700 },
    });
    const before = asked();
    await clock.advance(700);
    const error = (await calls[1]) as AcquireTimeoutError;
    expect(error).toMatchObject({
      code: "ACQUIRE_TIMEOUT",
      attempts: 0,
      waitedMs: 700,
      holder: { owner: entries.get("a")?.owner },
    });
    expect(asked()).toBe(before);
    await locks.close();
  });

  test("without an attempt, a call reports a holder of the same manager, with label and fence", async () => {
    const { calls, clock, holder, locks } = await lineOf(["1", "2", "3"], {
      "1": { label: "report" },
      "3": { wait: 700 },
    });
    await holder.release();
    await calls[0];
    await clock.advance(700);
    const error = (await calls[2]) as AcquireTimeoutError;
    expect(error.holder).toMatchObject({ label: "report", fence: 1n });
    expect(error.message).toContain('"report"');
    await locks.close();
  });

  test("by close ends all calls at once with ClosedError, and leaves no timer", async () => {
    const { calls, done, locks, clock, holder } = await lineOf(["1", "2", "3"]);
    await locks.close();
    await Promise.all(calls);
    expect(done.toSorted()).toEqual(["1: ClosedError", "2: ClosedError", "3: ClosedError"]);
    expect([holder.state, clock.pendingTimers]).toEqual(["released", 0]);
  });

  test("a waiter cancelled at the front passes the turn to the next", async () => {
    const controller = new AbortController();
    const { done, holder, locks } = await lineOf(["1", "2"], {
      "1": { signal: controller.signal },
    });
    // Woken by the release, but its attempt has not begun.
    const released = holder.release();
    controller.abort(new DOMException("enough", "Enough"));
    await released;
    await settle();
    expect(done).toEqual(["1: Enough", "2"]);
    await locks.close();
  });
});

describe("calls that do not queue", () => {
  test("tryAcquire and wait: 0 make one attempt, and change no waiter's position", async () => {
    const { locks, asked } = lockTable();
    const holder = await locks.acquire("a");
    const done: string[] = [];
    const calls = [note(done, "1", locks.acquire("a"))];
    await settle();
    const before = asked();
    expect(await locks.tryAcquire("a")).toBeUndefined();
    await expect(locks.acquire("a", { wait: 0 })).rejects.toMatchObject({ attempts: 1 });
    expect(asked()).toBe(before + 2);
    calls.push(note(done, "2", locks.acquire("a")));
    await holder.release();
    await ((await calls[0]) as Lease).release();
    await calls[1];
    expect(done).toEqual(["1", "2"]);
    await locks.close();
  });

  test("a call for several resources does not queue, and does not wait behind calls for one of them", async () => {
    const { locks, asked } = lockTable();
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a");
    await settle();
    const before = asked();
    const both = locks.acquire(["a", "b"], { wait: 10 }).catch((error: unknown) => error);
    await settle();
    // It makes an attempt of its own, although another call waits for one of its resources.
    expect(asked()).toBe(before + 1);
    await holder.release();
    await waiting;
    await locks.close();
    expect(await both).toMatchObject({ code: "CLOSED" });
  });
});

describe("10,000 waiters", () => {
  test("are the limit: the next call is rejected before anything is sent", async () => {
    const { locks, asked, clock } = lockTable();
    const holder = await locks.acquire("a");
    const controller = new AbortController();
    const { signal } = controller;
    let ended = 0;
    const end = (): number => (ended += 1);
    locks.acquire("a", { signal }).then(end, end);
    await settle();
    const calls = Array.from({ length: 9_999 }, () => locks.acquire("a").then(end, end));
    await settle();
    const before = asked();
    await expect(locks.acquire("a")).rejects.toMatchObject({
      code: "TOO_MANY_WAITERS",
      resources: ["a"],
    });
    await expect(locks.using("a", () => "never")).rejects.toThrow("10000");
    expect(asked()).toBe(before);
    // Other resources are not affected, and a call can wait again when another one has left.
    await (await locks.acquire("b")).release();
    expect(await locks.tryAcquire("a")).toBeUndefined();
    controller.abort(new Error("enough"));
    await settle();
    expect(ended).toBe(1);
    calls.push(locks.acquire("a").then(end, end));
    await settle();
    expect(ended).toBe(1);
    await locks.close();
    await Promise.all(calls);
    expect([ended, holder.state, clock.pendingTimers]).toEqual([10_001, "released", 0]);
  });
});
