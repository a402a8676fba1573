import { describe, expect, test } from "vitest";
import type { AttemptOutcome, ReleaseOutcome } from "../../src/core/store.ts";
import { settle } from "../../src/testing/index.ts";
import { deferred, scene } from "./fake-store.ts";

const held: AttemptOutcome = { kind: "held", holder: undefined, cleanup: undefined };

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

describe("clean-up", () => {
  test("continues after an aborted call has rejected, and close waits for it", async () => {
    const cleanup = deferred<void>();
    const { locks, clock } = scene({
      attempt: async () => ({ ...held, cleanup: cleanup.promise }),
    });
    const controller = new AbortController();
    const { signal } = controller;
    const call = locks.acquire("a", { signal, wait: "forever" });
    await clock.advance(1_000);
    controller.abort(new Error("enough"));
    expect(await progress(call)).toBe("rejected");
    await expect(call).rejects.toThrow("enough");
    const closing = locks.close();
    expect(await progress(closing)).toBe("pending");
    cleanup.resolve();
    expect(await progress(closing)).toBe("resolved");
  });

  test("of a lease that its user has begun to release is over before close is", async () => {
    const released = deferred<ReleaseOutcome>();
    const { locks } = scene({ release: () => released.promise });
    const lease = await locks.acquire("a");
    const releasing = lease.release();
    const closing = locks.close();
    expect(await progress(closing)).toBe("pending");
    released.resolve({ released: true });
    expect(await progress(closing)).toBe("resolved");
    expect(await releasing).toEqual({ released: true });
  });

  test("continues after close has rejected the calls, with or without a signal", async () => {
    const cleanup = deferred<void>();
    const left = deferred<void>();
    const { locks, clock } = scene({
      attempt: async () => ({ ...held, cleanup: cleanup.promise }),
      waiting: () => ({
        attempt: async () => ({ ...held, cleanup: cleanup.promise }),
        listen: () => undefined,
        leave: () => left.promise,
      }),
    });
    const { signal } = new AbortController();
    const calls = [
      locks.acquire("a", { wait: "forever" }),
      locks.acquire("b", { wait: "forever", signal }),
      locks.using("c", { wait: "1h" }, () => "never"),
    ];
    await clock.advance(1_000);
    const closing = locks.close();
    for (const call of calls) await expect(call).rejects.toMatchObject({ code: "CLOSED" });
    cleanup.resolve();
    expect(await progress(closing)).toBe("pending");
    left.resolve();
    expect(await progress(closing)).toBe("resolved");
  });

  test("of a queue entry continues after the wait has ended", async () => {
    const left = deferred<void>();
    const { locks, clock } = scene({
      waiting: () => ({
        attempt: async () => held,
        listen: () => undefined,
        leave: () => left.promise,
      }),
      attempt: async () => held,
    });
    const call = locks.acquire("a", { wait: 500 });
    const refused = expect(call).rejects.toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    await clock.advance(500);
    await refused;
    const closing = locks.close();
    expect(await progress(closing)).toBe("pending");
    left.resolve();
    expect(await progress(closing)).toBe("resolved");
  });
});

test("an abort at the same moment as a grant never leaves a lease behind, whichever comes first", async () => {
  // Number of promise steps between the grant of the store and the abort.
  for (let steps = 0; steps < 12; steps += 1) {
    const controller = new AbortController();
    const { signal } = controller;
    let attempts = 0;
    const { locks, clock, times } = scene({
      async attempt({ resources, owner, ttlMs }) {
        attempts += 1;
        if (attempts === 1) return held;
        const abortSoon = async (): Promise<void> => {
          for (let step = 0; step < steps; step += 1) await Promise.resolve();
          controller.abort(new Error("enough"));
        };
        void abortSoon();
        return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
      },
    });
    const call = locks.acquire("a", { signal, wait: "forever", renew: true }).then(
      (lease) => lease,
      () => undefined,
    );
    await clock.advance(1_000);
    const lease = await call;
    expect([attempts, lease?.state ?? "none"]).toEqual([2, lease === undefined ? "none" : "held"]);
    expect(times("release")).toHaveLength(lease === undefined ? 1 : 0);
    await locks.close();
    expect(clock.pendingTimers).toBe(0);
  }
});
