import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { steadyClock } from "../../src/core/time/instant.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { createLocks, LeaseLostError, type Lease } from "../../src/index.ts";
import { ManualClock, manualRuntime } from "../../src/testing/index.ts";
import { scene } from "./fake-store.ts";

const hourMs = 3_600_000;

/** Simulates sleep of the machine: only the wall clock advances. */
function sleep(clock: ManualClock, ms: number): void {
  clock.stepWall(ms);
}

function reasonOf(lease: Lease): string {
  const { reason } = lease.signal as { reason: unknown };
  return reason instanceof LeaseLostError ? reason.reason : "held";
}

describe("the steady time", () => {
  test("is the monotonic time plus the time that the machine slept", () => {
    const clock = new ManualClock({ monotonicMs: 500 });
    const steady = steadyClock(clock);
    expect(steady.now()).toEqual({ monotonicMs: 500, steadyMs: 500 });
    clock.pause(100);
    sleep(clock, 60_000);
    expect(steady.now()).toEqual({ monotonicMs: 600, steadyMs: 60_600 });
  });

  test("counts every gain of the wall clock, also after a step back, and never decreases", () => {
    const change = fc.record({
      ranMs: fc.nat(5_000),
      // A step smaller than the resolution of the wall clock does not count as one.
      wallMs: fc.integer({ min: -1_000, max: 1_000 }).map((ms) => ms * 5),
    });
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        const clock = new ManualClock();
        const steady = steadyClock(clock);
        let expectedMs = 0;
        for (const { ranMs, wallMs } of changes) {
          clock.pause(ranMs);
          clock.stepWall(wallMs);
          expectedMs += ranMs + Math.max(0, wallMs);
          expect(steady.now().steadyMs).toBe(expectedMs);
        }
      }),
    );
  });

  test("does not grow with the rounding of the wall clock", () => {
    let elapsedMs = 0;
    const steady = steadyClock({
      monotonicMs: () => elapsedMs,
      wallMs: () => Math.floor(1_000_000.3 + elapsedMs),
      setTimer: () => () => undefined,
      timerSlackMs: 0,
    });
    for (let look = 0; look < 10_000; look += 1) {
      elapsedMs += 0.37;
      const { monotonicMs, steadyMs } = steady.now();
      expect(steadyMs - monotonicMs).toBeLessThanOrEqual(1);
      expect(steadyMs - monotonicMs).toBeGreaterThanOrEqual(0);
    }
  });

  test("does not count a process stopped between the reads of both clocks as sleep", () => {
    let elapsedMs = 0;
    let stopped = false;
    const steady = steadyClock({
      monotonicMs() {
        const ms = elapsedMs;
        if (stopped) elapsedMs += 30_000;
        stopped = false;
        return ms;
      },
      wallMs: () => 1_000_000 + elapsedMs,
      setTimer: () => () => undefined,
      timerSlackMs: 0,
    });
    stopped = true;
    expect(steady.now()).toEqual({ monotonicMs: 30_000, steadyMs: 30_000 });
  });

  test("is the same for all users of one clock", () => {
    const clock = new ManualClock();
    const first = steadyClock(clock);
    clock.stepWall(-hourMs);
    first.now();
    sleep(clock, 1_000);
    expect(steadyClock(clock)).toBe(first);
    expect(steadyClock(first)).toBe(first);
    expect(steadyClock(clock).now().steadyMs).toBe(1_000);
  });
});

describe("if the machine sleeps after its wall clock was set back", () => {
  test.each([
    ["before the step", true],
    ["after the step", false],
  ])("a lease held since %s is lost", async (_, before) => {
    const { locks, clock } = scene({}, { ttl: "30s" });
    const early = before ? await locks.acquire("a") : undefined;
    clock.stepWall(-2 * hourMs);
    await clock.advance(1_000);
    const lease = early ?? (await locks.acquire("a"));
    expect(lease.state).toBe("held");
    sleep(clock, 60_000);
    expect([lease.state, lease.remainingMs(), reasonOf(lease)]).toEqual(["lost", 0, "clock"]);
  });

  test("a lease is lost although it was renewed before and after the step", async () => {
    const { locks, clock, times } = scene({}, { ttl: 9_000 });
    const lease = await locks.acquire("a", { renew: true });
    await clock.advance(20_000);
    clock.stepWall(-2 * hourMs);
    await clock.advance(20_000);
    expect(times("extend").length).toBeGreaterThan(10);
    sleep(clock, 9_000);
    expect([lease.state, reasonOf(lease)]).toEqual(["lost", "clock"]);
  });

  test("the signal of the lease aborts within a second of waking up", async () => {
    const { locks, clock } = scene({}, { ttl: "30s" });
    const lease = await locks.acquire("a");
    const reasons: string[] = [];
    lease.signal.addEventListener("abort", () => reasons.push(reasonOf(lease)));
    clock.stepWall(-2 * hourMs);
    await clock.advance(1_000);
    sleep(clock, 60_000);
    await clock.advance(1_000);
    expect(reasons).toEqual(["clock"]);
  });

  test("`using` rejects with the loss and the result", async () => {
    const { locks, clock } = scene({}, { ttl: "30s" });
    const call = locks.using("a", async () => {
      clock.stepWall(-2 * hourMs);
      await clock.advance(1_000);
      sleep(clock, 60_000);
      return "done";
    });
    await expect(call).rejects.toMatchObject({ reason: "clock", result: "done" });
  });

  test("a lease is lost after sleeps and steps that add up to its TTL, and not before", async () => {
    const { locks, clock } = scene({}, { ttl: "30s" });
    const lease = await locks.acquire("a");
    for (let nap = 1; nap <= 2; nap += 1) {
      clock.stepWall(-hourMs);
      await clock.advance(1_000);
      sleep(clock, 10_000);
      await clock.advance(1_000);
      expect([lease.state, lease.remainingMs()]).toEqual(["held", 30_000 - nap * 12_000]);
    }
    clock.stepWall(-hourMs);
    await clock.advance(1_000);
    sleep(clock, 10_000);
    expect([lease.state, reasonOf(lease)]).toEqual(["lost", "clock"]);
  });

  test("a grant that comes after the sleep is refused", async () => {
    const { locks, clock } = scene(
      {
        async attempt({ resources, owner, ttlMs }) {
          if (resources[0] === "slow") {
            clock.stepWall(-hourMs);
            await clock.advance(1_000);
            sleep(clock, ttlMs);
          }
          return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
        },
      },
      { ttl: "30s" },
    );
    // The clocks are checked while something is scheduled, such as the end of this lease.
    await locks.acquire("quick");
    const call = locks.acquire("slow", { wait: 0 });
    await expect(call).rejects.toThrow("before it could be handed out");
  });
});

test("a wall clock that runs slightly fast or slow shortens a lease by that drift at most", async () => {
  for (const slewMs of [-5, 5]) {
    const { locks, clock } = scene({}, { ttl: "30s" });
    const lease = await locks.acquire("a");
    for (let second = 0; second < 20; second += 1) {
      await clock.advance(1_000);
      clock.stepWall(slewMs);
    }
    expect(lease.remainingMs()).toBe(slewMs < 0 ? 10_000 : 9_900);
  }
});

test("a memory store ends a lock together with its lease when the machine sleeps", async () => {
  const { runtime, clock } = manualRuntime();
  const store = memory();
  const one = createLocks(store, { runtime, ttl: "30s" });
  const lease = await one.acquire("a");
  clock.stepWall(-2 * hourMs);
  await clock.advance(1_000);
  // A manager that is created later sees the same time.
  const other = createLocks(store, { runtime, ttl: "30s" });
  expect(await other.tryAcquire("a")).toBeUndefined();
  sleep(clock, 60_000);
  expect(lease.state).toBe("lost");
  const next = await other.tryAcquire("a");
  expect(next?.fence).toBeGreaterThan(lease.fence);
  await Promise.all([one.close(), other.close()]);
});
