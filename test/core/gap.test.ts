import { describe, expect, test } from "vitest";
import type { Lease } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { lockTable, note, type Table } from "./lock-table.ts";

/** Returns a store that leaves each resource to other clients for 5 ms after a release. */
function leavingGaps(): Table {
  const ends = new Map<string, number>();
  return lockTable((table) => ({
    gapRemainingMs(resources) {
      const endMs = Math.max(...resources.map((name) => ends.get(name) ?? 0));
      return Math.max(0, endMs - table().clock.monotonicMs());
    },
    async release({ resources }) {
      for (const name of resources) {
        table().entries.delete(name);
        ends.set(name, table().clock.monotonicMs() + 5);
      }
      return { released: true };
    },
  }));
}

/** Acquires and releases a lock, so that its gap is open. */
async function inGap(table: Table): Promise<void> {
  const lease = await table.locks.acquire("a");
  await lease.release();
}

async function release(call: Promise<Lease>): Promise<void> {
  const lease = await call;
  await lease.release();
}

describe("while the gap after a release is open", () => {
  test("the next waiter sends nothing, and attempts when the gap is over", async () => {
    const table = leavingGaps();
    const { locks, clock } = table;
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a");
    await settle();
    expect(table.asked()).toBe(2);
    await holder.release();
    await clock.advance(4.9);
    expect(table.asked()).toBe(2);
    await clock.advance(0.1);
    expect(table.times("attempt")).toEqual([0, 0, 5]);
    await release(waiting);
    await locks.close();
    expect(clock.pendingTimers).toBe(0);
  });

  test("calls of one manager keep their order", async () => {
    const table = leavingGaps();
    const { locks, clock } = table;
    const holder = await locks.acquire("a");
    const done: string[] = [];
    const first = note(done, "first", locks.acquire("a"));
    await settle();
    await holder.release();
    const second = note(done, "second", locks.acquire("a"));
    await clock.advance(5);
    expect(done).toEqual(["first"]);
    await release(first as Promise<Lease>);
    await clock.advance(5);
    expect(done).toEqual(["first", "second"]);
    await release(second as Promise<Lease>);
    await locks.close();
  });

  test.each([
    ["acquire", "a"],
    ["acquire", ["a", "b"]],
    ["tryAcquire", "a"],
  ] as const)(
    "a new call of %s(%j) waits for the end of the gap, then attempts",
    async (method, resources) => {
      const table = leavingGaps();
      const { locks, clock } = table;
      await inGap(table);
      const call = locks[method](resources);
      await clock.advance(4.9);
      expect(table.asked()).toBe(1);
      await clock.advance(0.1);
      const lease = await call;
      expect(table.times("attempt")).toEqual([0, 5]);
      // The whole validity is left: the gap is not counted.
      expect(lease?.remainingMs()).toBe(10_000);
      await lease?.release();
      await locks.close();
      expect(clock.pendingTimers).toBe(0);
    },
  );

  test("a call for another resource does not wait", async () => {
    const table = leavingGaps();
    await inGap(table);
    const lease = await table.locks.tryAcquire("b");
    expect(lease?.state).toBe("held");
    await lease?.release();
    await table.locks.close();
  });

  test("a call that is aborted ends at once and leaves nothing behind", async () => {
    const table = leavingGaps();
    const { locks, clock } = table;
    await inGap(table);
    const abort = new AbortController();
    const call = locks.acquire("a", { signal: abort.signal });
    await settle();
    abort.abort(new Error("no longer needed"));
    await expect(call).rejects.toThrow("no longer needed");
    expect([table.asked(), clock.pendingTimers]).toEqual([1, 0]);
    await locks.close();
  });

  test("close ends a call that has not made an attempt yet", async () => {
    const table = leavingGaps();
    await inGap(table);
    const done: string[] = [];
    const call = note(done, "call", table.locks.acquire("a"));
    await table.locks.close();
    await call;
    expect([done, table.asked()]).toEqual([["call: ClosedError"], 1]);
  });

  test("a waiter whose time ends in the gap makes no further attempt", async () => {
    const table = leavingGaps();
    const { locks, clock } = table;
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a", { wait: 100 }).catch((error: unknown) => error);
    await clock.advance(98);
    await holder.release();
    await clock.advance(2);
    expect(await waiting).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 100 });
    expect(table.asked()).toBe(2);
    await locks.close();
  });

  test("a new call with little time makes one attempt anyway", async () => {
    const table = leavingGaps();
    await inGap(table);
    const call = table.locks.acquire("a", { wait: 1 });
    await table.clock.advance(5);
    await release(call);
    await table.locks.close();
  });
});
