import { expect, test } from "vitest";
import type { Lease, Locks, Runtime } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { eventually } from "../support/redis-eventually.ts";
import { shareRedis } from "../support/redis-harness.ts";
import { untilQueued } from "./waiting-scene.ts";

/** A lock that is broken while a manager hands it over among its own calls. */

const redis = shareRedis(3);

/** Returns a runtime whose clock can stop, so that a turn of 25 ms lasts on a busy machine. */
function lastingTurns(): { readonly runtime: Runtime; readonly stopClock: () => void } {
  const { clock } = nodeRuntime;
  let stoppedAtMs: number | undefined;
  const monotonicMs = (): number => stoppedAtMs ?? clock.monotonicMs();
  const aheadMs = clock.wallMs() - clock.monotonicMs();
  const wallMs = (): number => Math.floor(monotonicMs() + aheadMs);
  return {
    runtime: { ...nodeRuntime, clock: { ...clock, monotonicMs, wallMs } },
    stopClock() {
      stoppedAtMs = clock.monotonicMs();
    },
  };
}

interface Turn {
  readonly ours: Locks;
  readonly theirs: Locks;
  readonly first: Lease;
  /** Call that already waited when the request for `first` was sent. */
  readonly second: Promise<Lease>;
}

async function beginTurn(count: number): Promise<Turn> {
  const { runtime, stopClock } = lastingTurns();
  // With this drift, a server's clock is not considered to have stepped.
  const drift = { fixed: "8s" } as const;
  const ours = await redis.locks(count, { drift }, { runtime, wait: "forever" });
  const theirs = await redis.locks(count);
  const holder = await ours.acquire("a");
  const front = ours.acquire("a");
  await untilQueued(redis.servers.slice(0, count), "a", 1);
  const second = ours.acquire("a");
  stopClock();
  await holder.release();
  return { ours, theirs, first: await front, second };
}

/** True if the call still waits after the manager's own calls had time to run. */
async function waits(call: Promise<unknown>, locks: Locks): Promise<boolean> {
  let settled = false;
  const note = (): void => void (settled = true);
  call.then(note, note);
  for (let look = 0; look < 5; look += 1) await locks.inspect("a");
  return !settled;
}

test.each([1, 3])(
  "on %i nodes, a broken lock is never handed over to a call that began after the break",
  async (count) => {
    const { ours, theirs, first, second } = await beginTurn(count);
    expect(await theirs.break("a")).toMatchObject({ broken: true });
    const theirLease = await theirs.acquire("a");
    const late = ours.acquire("a");
    expect(await first.release()).toEqual({ released: true, handedOver: true });
    const secondLease = await second;
    // The call waited before the break, so it gets the broken lock, with a fence that guards refuse.
    expect(secondLease.fence).toBeLessThan(theirLease.fence);
    expect(await secondLease.release()).toEqual({ released: false, reason: "taken" });
    expect(await waits(late, theirs)).toBe(true);
    expect(await theirLease.prove()).toBe(true);
    await theirLease.release();
    const lateLease = await late;
    expect(lateLease.fence).toBeGreaterThan(theirLease.fence);
    expect(await lateLease.release()).toEqual({ released: true });
    await redis.untilFree();
  },
);

test("a lock broken by its own manager is not handed over at all", async () => {
  const { ours, first, second } = await beginTurn(1);
  expect(await ours.break("a")).toMatchObject({ broken: true });
  expect(await first.release()).toEqual({ released: false, reason: "taken" });
  const next = await second;
  expect(next.fence).toBeGreaterThan(first.fence);
  await next.release();
  await eventually(() => redis.untilFree());
});
