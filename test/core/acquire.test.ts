import { describe, expect, test, vi } from "vitest";
import { labelOf } from "../../src/core/owners.ts";
import type { AttemptOutcome } from "../../src/core/store.ts";
import { type AcquireTimeoutError, QuorumError, StoreError } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { deferred, delay, scene } from "./fake-store.ts";

const held: AttemptOutcome = { kind: "held", holder: undefined, cleanup: undefined };

function broken(retryable: boolean, cleanup?: Promise<void>): AttemptOutcome {
  return { kind: "failed", error: new StoreError("broken"), retryable, cleanup };
}

/** Returns the state of a promise, without waiting for it. */
async function progress(call: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> {
  let state: "pending" | "resolved" | "rejected" = "pending";
  call.then(
    () => (state = "resolved"),
    () => (state = "rejected"),
  );
  await settle();
  return state;
}

describe("attempts", () => {
  test("each have a different owner, with the label in it", async () => {
    const { locks, clock, requests } = scene({ attempt: async () => held });
    const waiting = locks.acquire("a", { wait: 1_000, label: "job | 7 é" });
    const refused = expect(waiting).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await clock.advance(1_000);
    await refused;
    const owners = requests.map(({ owner }) => owner);
    expect(owners.length).toBeGreaterThan(5);
    expect(new Set(owners).size).toBe(owners.length);
    for (const owner of owners) {
      expect(owner).not.toMatch(/[| ]/);
      expect(labelOf(owner)).toBe("job | 7 é");
    }
  });

  test("are spaced within the bounds of retry, and the last comes at the end of the wait", async () => {
    const { locks, clock, times } = scene({ attempt: async () => held });
    const retry = { minDelay: 50, maxDelay: 100 };
    const refused = locks.acquire("a", { wait: 1_000, retry }).catch((error: unknown) => error);
    await clock.advance(1_000);
    const error = (await refused) as AcquireTimeoutError;
    const at = times("attempt");
    const pauses = at.slice(1).map((atMs, index) => atMs - (at[index] ?? 0));
    for (const pauseMs of pauses.slice(0, -1)) {
      expect(pauseMs).toBeGreaterThanOrEqual(50);
      expect(pauseMs).toBeLessThanOrEqual(100);
    }
    expect(at.at(-1)).toBe(1_000);
    expect([error.attempts, error.waitedMs]).toEqual([at.length, 1_000]);
  });

  test('go on without end with wait "forever"', async () => {
    let free = false;
    const { locks, clock } = scene({
      async attempt({ resources, owner, ttlMs }) {
        const grant = { resources, owner, fence: 1n, validityMs: ttlMs };
        return free ? { kind: "granted", grant } : held;
      },
    });
    const waiting = locks.acquire("a", { wait: "forever", retry: { minDelay: 9_000 } });
    await clock.advance(24 * 3_600_000);
    expect(await progress(waiting)).toBe("pending");
    free = true;
    await clock.advance(10_000);
    expect((await waiting).state).toBe("held");
    await locks.close();
  });

  test("that fail make the call reject with the fault, never with AcquireTimeoutError", async () => {
    const { locks, clock, times } = scene({ attempt: async () => broken(true) });
    const refused = expect(locks.acquire("a", { wait: 500 })).rejects.toThrow("broken");
    await clock.advance(500);
    await refused;
    expect(times("attempt").length).toBeGreaterThan(1);
    await expect(locks.tryAcquire("a")).rejects.toThrow("broken");
  });

  test("that fail for good make the call reject at once", async () => {
    const { locks, times } = scene({ attempt: async () => broken(false) });
    await expect(locks.acquire("a", { wait: "forever" })).rejects.toThrow("broken");
    expect(times("attempt")).toHaveLength(1);
  });

  test("that take longer than their validity are repeated", async () => {
    let slow = true;
    const { locks, clock, times } = scene({
      async attempt({ resources, owner, ttlMs }) {
        if (slow) await delay(clock, ttlMs);
        return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
      },
    });
    const errors: unknown[] = [];
    locks.on("attempt", ({ error }) => errors.push(error));
    const acquiring = locks.acquire("a", { ttl: 100, wait: 1_000 });
    await clock.advance(100);
    slow = false;
    await clock.advance(30);
    expect((await acquiring).state).toBe("held");
    expect(errors).toEqual([expect.any(QuorumError), undefined]);
    expect(times("release")).toEqual([100]);
    await locks.close();
  });
});

describe("clean-up", () => {
  test("has ended when the call rejects", async () => {
    const cleanup = deferred<void>();
    const { locks } = scene({ attempt: async () => broken(false, cleanup.promise) });
    const call = locks.tryAcquire("a");
    expect(await progress(call)).toBe("pending");
    cleanup.resolve();
    await expect(call).rejects.toThrow("broken");
  });
});

describe("an abort", () => {
  test("ends a pause between attempts at once", async () => {
    const { locks, clock } = scene({ attempt: async () => held });
    const controller = new AbortController();
    const { signal } = controller;
    const call = locks.acquire("a", { signal, wait: "forever", retry: { minDelay: "1h" } });
    await settle();
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect([clock.monotonicMs(), clock.pendingTimers]).toEqual([0, 0]);
  });

  test("by a listener of `contended` skips the pause that was about to begin", async () => {
    const { locks, clock } = scene({ attempt: async () => held });
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("enough");
    locks.on("contended", () => controller.abort(reason));
    const call = locks.acquire("a", { signal, wait: "forever", retry: { minDelay: "1h" } });
    await expect(call).rejects.toBe(reason);
    expect([clock.monotonicMs(), clock.pendingTimers]).toEqual([0, 0]);
  });

  test("reaches an attempt under way, and a grant that comes afterwards is released", async () => {
    const reply = deferred<AttemptOutcome>();
    let notified = 0;
    const { locks, requests, times } = scene({
      attempt({ cancellation }) {
        cancellation.listen(() => (notified += 1));
        return reply.promise;
      },
    });
    const controller = new AbortController();
    const call = locks.acquire("a", { signal: controller.signal });
    await settle();
    controller.abort(new Error("enough"));
    expect([notified, await progress(call)]).toEqual([1, "rejected"]);
    await expect(call).rejects.toThrow("enough");
    expect(times("release")).toHaveLength(0);
    const owner = requests[0]?.owner ?? "";
    const grant = { resources: ["a"], owner, fence: 1n, validityMs: 10_000 };
    reply.resolve({ kind: "granted", grant });
    await settle();
    expect(times("release")).toHaveLength(1);
    await locks.close();
  });

  test("leaves no listener on a signal that outlives the call", async () => {
    const { locks } = scene();
    const controller = new AbortController();
    const { signal } = controller;
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    for (let call = 0; call < 5; call += 1) await locks.acquire(`a${call}`, { signal });
    expect(added).toHaveBeenCalledTimes(5);
    expect(removed.mock.calls).toEqual(added.mock.calls);
    await locks.close();
  });
});

describe("close", () => {
  test("waits for an attempt under way, and releases its lease", async () => {
    const reply = deferred<AttemptOutcome>();
    const { locks, requests, times } = scene({ attempt: () => reply.promise });
    const refused = expect(locks.acquire("a")).rejects.toMatchObject({ code: "CLOSED" });
    await settle();
    const closing = locks.close();
    expect(await progress(closing)).toBe("pending");
    const owner = requests[0]?.owner ?? "";
    const grant = { resources: ["a"], owner, fence: 1n, validityMs: 10_000 };
    reply.resolve({ kind: "granted", grant });
    await refused;
    await closing;
    expect(times("release")).toHaveLength(1);
  });

  test("releases every lease, closes the store once, and leaves no timer", async () => {
    let closed = 0;
    const { locks, clock, times } = scene(
      {
        async close() {
          closed += 1;
        },
      },
      { renew: true },
    );
    const leases = await Promise.all(["a", "b", "c"].map((name) => locks.acquire(name)));
    await Promise.all([locks.close(), locks.close(), locks[Symbol.asyncDispose]()]);
    expect(leases.map(({ state }) => state)).toEqual(["released", "released", "released"]);
    expect([closed, times("release").length, clock.pendingTimers]).toEqual([1, 3, 0]);
  });
});
