import { describe, expect, test, vi } from "vitest";
import { ManualClock, manualRuntime, SeededRandom, settle } from "../../src/testing/index.ts";

describe("a manual clock", () => {
  test("moves both clocks only when it is advanced", async () => {
    const clock = new ManualClock({ monotonicMs: 5, wallMs: 1_000 });
    await settle();
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([5, 1_000]);
    await clock.advance(10);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([15, 1_010]);
    clock.pause(10);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([25, 1_020]);
    clock.stepWall(-500);
    expect([clock.monotonicMs(), clock.wallMs()]).toEqual([25, 520]);
  });

  test("runs timers in order, each at its time", async () => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const note = (name: string) => () => ran.push(`${name} at ${clock.monotonicMs()}`);
    clock.setTimer(20, true, note("c"));
    clock.setTimer(10, true, note("a"));
    clock.setTimer(10, true, note("b"));
    clock.setTimer(31, true, note("never"));
    await clock.advance(30);
    expect(ran).toEqual(["a at 10", "b at 10", "c at 20"]);
    expect(clock.monotonicMs()).toBe(30);
  });

  test("lets everything that follows from one timer happen before the next", async () => {
    const clock = new ManualClock();
    const order: string[] = [];
    clock.setTimer(10, true, () => {
      void (async () => {
        for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
        order.push(`first at ${clock.monotonicMs()}`);
        clock.setTimer(5, true, () => order.push(`set on the way at ${clock.monotonicMs()}`));
      })();
    });
    clock.setTimer(20, true, () => order.push(`second at ${clock.monotonicMs()}`));
    await clock.advance(30);
    expect(order).toEqual(["first at 10", "set on the way at 15", "second at 20"]);
  });

  test("runs no timer in a pause, and overdue ones right after it", async () => {
    const clock = new ManualClock();
    const ran: number[] = [];
    clock.setTimer(10, true, () => ran.push(clock.monotonicMs()));
    clock.pause(100);
    await settle();
    expect(ran).toEqual([]);
    await clock.advance(0);
    expect(ran).toEqual([100]);
  });

  test("forgets a cancelled timer, and counts the pending ones", async () => {
    const clock = new ManualClock();
    const cancel = clock.setTimer(10, true, () => expect.fail("it was cancelled"));
    clock.setTimer(20, false, () => undefined);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([2, 1]);
    cancel();
    cancel();
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    await clock.advance(20);
    expect(clock.pendingTimers).toBe(0);
  });

  test("refuses to go back, and to be advanced by two calls at once", async () => {
    const clock = new ManualClock();
    await expect(clock.advance(-1)).rejects.toThrow(RangeError);
    await expect(clock.advance(Number.NaN)).rejects.toThrow(RangeError);
    expect(() => clock.pause(-1)).toThrow(RangeError);
    const first = clock.advance(10);
    await expect(clock.advance(10)).rejects.toThrow("under way");
    await first;
    expect(clock.monotonicMs()).toBe(10);
  });

  test("passes on an error thrown by a timer, and can go on", async () => {
    const clock = new ManualClock();
    clock.setTimer(5, true, () => {
      throw new Error("a timer that failed");
    });
    await expect(clock.advance(10)).rejects.toThrow("a timer that failed");
    await clock.advance(10);
    expect(clock.monotonicMs()).toBe(15);
  });

  test("works under fake timers", async () => {
    vi.useFakeTimers();
    try {
      const clock = new ManualClock();
      await clock.advance(10);
      expect(clock.monotonicMs()).toBe(10);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("seeded randomness", () => {
  test("is the same for the same seed and different for another", () => {
    const draw = (seed: number) => {
      const random = new SeededRandom(seed);
      return [random.fraction(), random.fraction(), random.uniqueBase(), random.uniqueBase()];
    };
    expect(draw(1)).toEqual(draw(1));
    const all = [1, 2, 3, 2 ** 32 + 1, -1].flatMap(draw);
    expect(new Set(all).size).toBe(all.length);
  });

  test("is spread evenly over its range", () => {
    const random = new SeededRandom(42);
    const counts = Array.from({ length: 10 }, () => 0);
    for (let draw = 0; draw < 10_000; draw += 1) {
      const fraction = random.fraction();
      expect(fraction >= 0 && fraction < 1).toBe(true);
      const bucket = Math.floor(fraction * 10);
      counts[bucket] = (counts[bucket] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(150);
  });

  test("draws unique bases that fit the wire format", () => {
    expect(new SeededRandom(7).uniqueBase()).toMatch(/^[\w-]{22}$/);
  });
});

test("a manual runtime accepts other diagnostics for its events", () => {
  const diagnostics = {
    hasSubscribers: () => true,
    publish: () => undefined,
    listenerFailed: () => undefined,
  };
  expect(manualRuntime({ diagnostics }).runtime.diagnostics).toBe(diagnostics);
});
