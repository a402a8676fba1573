import { describe, expect, test } from "vitest";
import type { AcquireTimeoutError, Lease } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { lockTable, note } from "./lock-table.ts";

describe("the line of one manager", () => {
  test("is served in the order of the calls, at each release and without asking", async () => {
    const { locks, clock, asked } = lockTable();
    const holder = await locks.acquire("a");
    const served: number[] = [];
    const waiting = Array.from({ length: 20 }, async (_, index) => {
      // The first is in the line before the others come: a newcomer has to ask once.
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
    // One question for each of them, but for the one that stood there first.
    expect([asked(), clock.monotonicMs(), clock.pendingTimers]).toEqual([2 + 20, 0, 0]);
    await locks.close();
  });

  test("asks nobody while one of its own has it, however long that is", async () => {
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

  test("of one resource does not hold up another", async () => {
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

  test("wakes the next when a lease is lost", async () => {
    const { locks, clock, entries } = lockTable();
    const done: string[] = [];
    const first = await locks.acquire("a", { ttl: 1_000 });
    // Others behind, so that the line has a holder of its own when it is lost.
    const calls = [note(done, "second", locks.acquire("a", { ttl: 1_000 }))];
    await settle();
    calls.push(note(done, "third", locks.acquire("a")));
    // Its keys have gone before, and nobody has noticed.
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

  test("stays quiet when a lease that was lost long ago is given back", async () => {
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

  test("is woken by a lease on several resources, in each of their lines", async () => {
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

describe("leaving the line", () => {
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

  test("by a signal, a timeout or in front keeps the order of those who stay", async () => {
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

  test("in front makes the next one ask at once", async () => {
    const controller = new AbortController();
    const { entries, done, locks, clock } = await lineOf(["1", "2"], {
      "1": { signal: controller.signal },
    });
    // Free, and nobody was told: as a foreign holder leaves it.
    entries.clear();
    controller.abort(new DOMException("enough", "Enough"));
    await settle();
    expect([done, clock.monotonicMs()]).toEqual([["1: Enough", "2"], 0]);
    await locks.close();
  });

  test("without ever having had a turn names the holder that others saw", async () => {
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

  test("without a turn names a holder of the same manager, with label and fence", async () => {
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

  test("all at once by close, each with ClosedError, and no timer stays", async () => {
    const { calls, done, locks, clock, holder } = await lineOf(["1", "2", "3"]);
    await locks.close();
    await Promise.all(calls);
    expect(done.toSorted()).toEqual(["1: ClosedError", "2: ClosedError", "3: ClosedError"]);
    expect([holder.state, clock.pendingTimers]).toEqual(["released", 0]);
  });

  test("while its turn comes leaves the turn to the next", async () => {
    const controller = new AbortController();
    const { done, holder, locks } = await lineOf(["1", "2"], {
      "1": { signal: controller.signal },
    });
    // Woken by the release, but not yet at the store.
    const released = holder.release();
    controller.abort(new DOMException("enough", "Enough"));
    await released;
    await settle();
    expect(done).toEqual(["1: Enough", "2"]);
    await locks.close();
  });
});

describe("not in the line", () => {
  test("tryAcquire and wait: 0 ask the store once, and nobody loses a place by it", async () => {
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

  test("several resources stand in no line, and are not kept waiting by one", async () => {
    const { locks, asked } = lockTable();
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a");
    await settle();
    const before = asked();
    const both = locks.acquire(["a", "b"], { wait: 10 }).catch((error: unknown) => error);
    await settle();
    // It asks by itself, whoever waits for a part of it.
    expect(asked()).toBe(before + 1);
    await holder.release();
    await waiting;
    await locks.close();
    expect(await both).toMatchObject({ code: "CLOSED" });
  });
});

describe("10,000 waiters", () => {
  test("are the most: the next is refused before anything is sent", async () => {
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
    // Others are not concerned, and there is room again when one has left.
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
