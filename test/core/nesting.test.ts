import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  createLocks,
  type Locks,
  SelfDeadlockError,
} from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";

const forever = { wait: "forever" } as const;
const at = Date.UTC(2030, 0, 1, 12, 0, 3);

interface Scene {
  readonly locks: Locks;
  readonly clock: ManualClock;
}

/** Opens a manager on a manual clock, with or without the context of asynchronous calls. */
function open(follows = true): Scene {
  const { runtime, clock } = manualRuntime({ wallMs: at });
  const { asyncContext } = nodeRuntime;
  const own = follows && asyncContext !== undefined ? { ...runtime, asyncContext } : runtime;
  return { locks: createLocks(memory(), { runtime: own }), clock };
}

async function rejection(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("work that waits forever for a resource that it holds itself", () => {
  test.each([
    ["acquire", (locks: Locks) => locks.acquire("report", forever)],
    ["using", (locks: Locks) => locks.using("report", forever, () => "never")],
    ["acquire of several", (locks: Locks) => locks.acquire(["a", "report"], forever)],
  ])("is refused at once: %s", async (_what, nested) => {
    const { locks, clock } = open();
    const given = { ...forever, label: "nightly" };
    const error = await locks.using("report", given, async () => {
      await settle();
      return await rejection(nested(locks));
    });
    expect(error).toBeInstanceOf(SelfDeadlockError);
    expect(error).toMatchObject({
      code: "SELF_DEADLOCK",
      resources: ["report"],
      label: "nightly",
      sinceMs: at,
    });
    expect(String(error)).toContain(
      '"report" is held by this process since 12:00:03 UTC (label "nightly")',
    );
    expect(String(error)).toContain("leases do not nest");
    expect(clock.monotonicMs()).toBe(0);
    await locks.close();
  });

  test("is refused for the outer and for the inner lease if two are nested", async () => {
    const { locks } = open();
    const errors = await locks.using("a", forever, async () =>
      locks.using("b", forever, async () => [
        await rejection(locks.acquire("a", forever)),
        await rejection(locks.acquire("b", forever)),
      ]),
    );
    for (const error of errors) expect(error).toBeInstanceOf(SelfDeadlockError);
    await locks.close();
  });

  test("is refused in a lease with a finite wait, once the manager has waited forever", async () => {
    const { locks } = open();
    await locks.using("warm", forever, () => undefined);
    const error = await locks.using("a", () => rejection(locks.acquire("a", forever)));
    expect(error).toBeInstanceOf(SelfDeadlockError);
    await locks.close();
  });

  test("is not refused if the wait can end", async () => {
    const { locks, clock } = open();
    const other = open();
    const granted: string[] = [];
    const note = (name: string) => (): void => void granted.push(name);
    // Another resource, another manager, another chain of calls, a lease released or lost before.
    await locks.using("a", forever, async (lease) => {
      await locks.using("b", forever, note("another resource"));
      await other.locks.using("a", forever, note("another manager"));
      await lease.release();
      await locks.using("a", forever, note("given back before"));
    });
    const inside = locks.using("a", { ...forever, renew: false, ttl: "1s" }, async () => {
      await clock.advance(2_000);
      await locks.using("a", forever, note("lost before"));
    });
    await expect(inside).rejects.toMatchObject({ code: "LEASE_LOST" });
    let release: (() => void) | undefined;
    const holding = locks.using("a", forever, async () => {
      await new Promise<void>((resolve) => (release = resolve));
    });
    await settle();
    const waiting = locks.using("a", forever, note("another chain"));
    await settle();
    release?.();
    await Promise.all([holding, waiting]);
    // A call that the work left behind may wait once the lease of that work has ended.
    let left: Promise<unknown> | undefined;
    await locks.using("a", forever, () => {
      left = settle().then(() => locks.using("a", forever, note("after the work")));
    });
    await left;
    expect(granted).toEqual([
      "another resource",
      "another manager",
      "given back before",
      "lost before",
      "another chain",
      "after the work",
    ]);
    await Promise.all([locks.close(), other.locks.close()]);
  });

  test("waits if the runtime cannot follow calls", async () => {
    const { locks, clock } = open(false);
    const controller = new AbortController();
    const { signal } = controller;
    const error = await locks.using("a", forever, async () => {
      const waiting = rejection(locks.acquire("a", { ...forever, signal }));
      await clock.advance(60_000);
      controller.abort(new Error("enough"));
      return await waiting;
    });
    expect(String(error)).toContain("enough");
    await locks.close();
  });
});

describe("a finite wait for a resource that the same manager holds", () => {
  test.each([true, false])(
    "reports its own lease, with time and label of the acquisition (%s)",
    async (follows) => {
      const { locks, clock } = open(follows);
      const error = await locks.using("re", { label: "report" }, async () => {
        const nested = rejection(locks.using("re", { wait: 500 }, () => "never"));
        await clock.advance(1_000);
        return await nested;
      });
      expect(error).toBeInstanceOf(AcquireTimeoutError);
      expect(error).toMatchObject({ holder: { self: true, label: "report", sinceMs: at } });
      expect(String(error)).toContain(
        '"re" was held by this process since 12:00:03 UTC (label "report") until the wait',
      );
      expect(String(error)).toContain("leases do not nest");
      await locks.close();
    },
  );

  test("reports its own lease at once with wait: 0, and tryAcquire returns undefined", async () => {
    const { locks } = open();
    const lease = await locks.acquire("re");
    const error = await rejection(locks.acquire("re", { wait: 0 }));
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", holder: { self: true, sinceMs: at } });
    expect(await locks.tryAcquire("re")).toBeUndefined();
    await lease.release();
    await locks.close();
  });

  test("reports its own lease in the `contended` event, but no holder in another manager", async () => {
    const store = memory();
    const { runtime, clock } = manualRuntime();
    const [ours, theirs] = [createLocks(store, { runtime }), createLocks(store, { runtime })];
    const own: unknown[] = [];
    for (const locks of [ours, theirs]) {
      locks.on("contended", ({ holder }) => own.push(holder?.self));
    }
    const lease = await ours.acquire("re");
    const calls = [ours, theirs].map((locks) => rejection(locks.acquire("re", { wait: 100 })));
    await clock.advance(200);
    const [self, other] = await Promise.all(calls);
    expect(String(self)).toContain("this process");
    expect(String(other)).not.toContain("this process");
    expect((other as AcquireTimeoutError).holder).not.toHaveProperty("self");
    expect(new Set(own)).toEqual(new Set([true, undefined]));
    await lease.release();
    await Promise.all([ours.close(), theirs.close()]);
  });
});
