import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Clock } from "../../src/core/ports.ts";
import { TimerScheduler, type Task } from "../../src/core/time/scheduler.ts";
import { ManualClock } from "../../src/testing/index.ts";

function setUp() {
  const clock = new ManualClock();
  return { clock, scheduler: new TimerScheduler(clock) };
}

describe("tasks", () => {
  test("run in the order in which they are due", async () => {
    const { clock, scheduler } = setUp();
    const ran: number[] = [];
    for (const dueMs of [30, 10, 20, 25, 5]) scheduler.at(dueMs, false, () => ran.push(dueMs));
    await clock.advance(22);
    expect(ran).toEqual([5, 10, 20]);
    await clock.advance(100);
    expect(ran).toEqual([5, 10, 20, 25, 30]);
    expect([scheduler.size, clock.pendingTimers]).toEqual([0, 0]);
  });

  test("never run before they are due, even if the timer fires early", () => {
    let nowMs = 0;
    const timers: (() => void)[] = [];
    const scheduler = new TimerScheduler({
      monotonicMs: () => nowMs,
      wallMs: () => nowMs,
      setTimer(_delayMs, _keepAlive, callback) {
        timers.push(callback);
        return () => undefined;
      },
      timerSlackMs: 1,
    });
    const ran: number[] = [];
    scheduler.at(10, false, () => ran.push(nowMs));
    nowMs = 9.4;
    timers.shift()?.();
    expect([ran, timers.length]).toEqual([[], 1]);
    nowMs = 10;
    timers.shift()?.();
    expect(ran).toEqual([10]);
  });

  test("can be cancelled, moved, and cancelled again", async () => {
    const { clock, scheduler } = setUp();
    const ran: string[] = [];
    const cancelled = scheduler.at(10, false, () => ran.push("cancelled"));
    const moved = scheduler.at(10, false, () => ran.push(`moved ${clock.monotonicMs()}`));
    scheduler.cancel(cancelled);
    scheduler.cancel(cancelled);
    scheduler.schedule(moved, 40);
    await clock.advance(100);
    expect(ran).toEqual(["moved 40"]);
    scheduler.cancel(moved);
    expect(clock.pendingTimers).toBe(0);
  });

  test("that cancel others while they run prevent them from running", async () => {
    const { clock, scheduler } = setUp();
    const ran: string[] = [];
    const second = scheduler.at(11, false, () => ran.push("second"));
    scheduler.at(10, false, () => {
      ran.push("first");
      scheduler.cancel(second);
    });
    clock.pause(50);
    await clock.advance(0);
    expect(ran).toEqual(["first"]);
  });

  test("that are cancelled in the middle leave the others in order", async () => {
    const { clock, scheduler } = setUp();
    const ran: number[] = [];
    // In the heap, the last of these must move up when it replaces the fourth.
    const tasks = [1, 10, 2, 11, 12, 3, 4].map((dueMs) =>
      scheduler.at(dueMs, false, () => ran.push(dueMs)),
    );
    const [, , , fourth] = tasks;
    if (fourth !== undefined) scheduler.cancel(fourth);
    clock.pause(100);
    await clock.advance(0);
    expect(ran).toEqual([1, 2, 3, 4, 10, 12]);
  });

  test("that schedule themselves for now do not delay everything else", async () => {
    const { clock, scheduler } = setUp();
    const ran: string[] = [];
    let left = 1_000;
    const again = (): void => {
      ran.push("again");
      left -= 1;
      if (left > 0) scheduler.at(clock.monotonicMs(), false, again);
    };
    scheduler.at(10, false, () => {
      again();
      void Promise.resolve().then(() => ran.push("what follows"));
    });
    scheduler.at(10, false, () => ran.push("another task"));
    await clock.advance(10);
    expect(ran.indexOf("another task")).toBeLessThan(5);
    expect(ran.indexOf("what follows")).toBeLessThan(5);
    expect(left).toBe(0);
  });

  test("share one timer, which is set again only to fire earlier", () => {
    let set = 0;
    const clock = new ManualClock();
    const counting = {
      monotonicMs: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs(),
      timerSlackMs: 0,
      setTimer: (...args: Parameters<ManualClock["setTimer"]>) => {
        set += 1;
        return clock.setTimer(...args);
      },
    };
    const scheduler = new TimerScheduler(counting);
    for (let dueMs = 100; dueMs < 1_100; dueMs += 1) scheduler.at(dueMs, false, () => undefined);
    expect([set, clock.pendingTimers]).toEqual([1, 1]);
    scheduler.at(50, false, () => undefined);
    expect([set, clock.pendingTimers]).toEqual([2, 1]);
  });

  test("that throw do not stop the others", async () => {
    const { clock, scheduler } = setUp();
    const ran: string[] = [];
    scheduler.at(10, false, () => {
      throw new Error("a task that failed");
    });
    scheduler.at(20, false, () => ran.push("next"));
    await expect(clock.advance(100)).rejects.toThrow("a task that failed");
    await clock.advance(100);
    expect(ran).toEqual(["next"]);
  });
});

describe("keeping the process alive", () => {
  test("lasts while one task requests it", async () => {
    const { clock, scheduler } = setUp();
    scheduler.at(5_000, false, () => undefined);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    const wait = scheduler.at(100, true, () => undefined);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([2, 1]);
    scheduler.cancel(wait);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    scheduler.at(50, true, () => undefined);
    expect(clock.keepingAlive).toBe(1);
    await clock.advance(50);
    expect([clock.pendingTimers, clock.keepingAlive]).toEqual([1, 0]);
    scheduler.at(4_000, true, () => undefined);
    await clock.advance(3_500);
    expect(clock.keepingAlive).toBe(1);
    await clock.advance(500);
    expect(clock.keepingAlive).toBe(0);
  });

  test("never delays a due task, however often it begins and ends", async () => {
    const { clock, scheduler } = coarse();
    const ran: number[] = [];
    scheduler.at(10, false, () => ran.push(clock.monotonicMs()));
    for (let turn = 0; turn < 40; turn += 1) {
      const wait = scheduler.at(1_000, true, () => undefined);
      await clock.advance(0.4);
      scheduler.cancel(wait);
    }
    expect(ran).toEqual([10]);
  });

  test("does not delay a due task if earlier tasks are added", async () => {
    const { clock, scheduler } = coarse();
    await clock.advance(100);
    const ran: number[] = [];
    for (let turn = 0; turn < 10; turn += 1) {
      scheduler.at(50 - turn, false, () => ran.push(clock.monotonicMs()));
      await clock.advance(0.4);
    }
    expect(ran[0]).toBe(101);
  });
});

/** Returns a scheduler on timers of whole milliseconds, at least one, like those of Node.js. */
function coarse() {
  const clock = new ManualClock();
  const set = clock.setTimer.bind(clock);
  clock.setTimer = (delayMs, keepAlive, callback) =>
    set(Math.max(1, Math.ceil(delayMs)), keepAlive, callback);
  return { clock, scheduler: new TimerScheduler(clock) };
}

describe("the clocks", () => {
  test("are checked once a second, whenever tasks are due", async () => {
    const { clock, scheduler } = setUp();
    const stepsAt: number[] = [];
    scheduler.onClockStep(() => stepsAt.push(clock.monotonicMs()));
    scheduler.at(60_000, false, () => undefined);
    await clock.advance(2_500);
    clock.stepWall(500);
    await clock.advance(2_500);
    clock.stepWall(-500);
    await clock.advance(2_500);
    clock.stepWall(500);
    await clock.advance(2_500);
    // A step back does not count as a step, because it shortens no lease. A gain after it does.
    expect(stepsAt).toEqual([3_000, 8_000]);
  });

  test("that drift apart in small gains count as a step when the gains add up", async () => {
    const { clock, scheduler } = setUp();
    let steps = 0;
    scheduler.onClockStep(() => (steps += 1));
    scheduler.at(60_000, false, () => undefined);
    clock.stepWall(19);
    await clock.advance(1_000);
    expect(steps).toBe(0);
    clock.stepWall(1);
    await clock.advance(1_000);
    expect(steps).toBe(1);
  });

  test("that stepped are reported before any due task runs", async () => {
    const { clock, scheduler } = setUp();
    const order: string[] = [];
    scheduler.onClockStep(() => order.push("step"));
    scheduler.at(10, false, () => order.push("task"));
    clock.stepWall(1_000);
    await clock.advance(10);
    expect(order).toEqual(["step", "task"]);
  });
});

/** Operations of a random run. The numbers select a task and a moment. */
const operation = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("schedule" as const),
      task: fc.nat(19),
      inMs: fc.nat(3_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("cancel" as const), task: fc.nat(19) }),
  },
  fc.record({ kind: fc.constant("advance" as const), ms: fc.nat(2_000) }),
  fc.record({ kind: fc.constant("pause" as const), ms: fc.nat(2_000) }),
);

test("a scheduler runs the same tasks as a sorted list, for any order of calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { maxLength: 100, size: "max" }), async (operations) => {
      const { clock, scheduler } = setUp();
      const ran: { task: number; atMs: number }[] = [];
      const expected: { task: number; atMs: number }[] = [];
      const due = new Map<number, number>();
      const tasks = Array.from({ length: 20 }, (_, task): Task => {
        const run = () => void ran.push({ task, atMs: clock.monotonicMs() });
        return { dueMs: 0, heapIndex: -1, keepAlive: task % 3 === 0, run };
      });
      const runDue = (fromMs: number, untilMs: number) => {
        const over = [...due].filter(([, dueMs]) => dueMs <= untilMs);
        for (const [task, dueMs] of over.sort(([, a], [, b]) => a - b)) {
          due.delete(task);
          expected.push({ task, atMs: Math.max(fromMs, dueMs) });
        }
      };
      for (const step of operations) {
        const nowMs = clock.monotonicMs();
        if (step.kind === "advance") {
          runDue(nowMs, nowMs + step.ms);
          await clock.advance(step.ms);
        } else if (step.kind === "pause") {
          clock.pause(step.ms);
        } else {
          const task = tasks[step.task];
          if (task === undefined) throw new Error("no such task");
          due.delete(step.task);
          if (step.kind === "cancel") scheduler.cancel(task);
          else {
            scheduler.schedule(task, nowMs + step.inMs);
            due.set(step.task, nowMs + step.inMs);
          }
        }
        // Tasks that are due at the same moment may run in any order.
        const sorted = (list: typeof ran) =>
          list.toSorted((a, b) => a.atMs - b.atMs || a.task - b.task);
        expect(sorted(ran)).toEqual(sorted(expected));
        expect(ran.map(({ atMs }) => atMs)).toEqual(expected.map(({ atMs }) => atMs));
        expect(scheduler.size).toBe(due.size);
        const keeping = [...due.keys()].some((task) => task % 3 === 0);
        expect(clock.keepingAlive).toBe(keeping ? 1 : 0);
        expect(clock.pendingTimers - clock.keepingAlive).toBe(due.size > 0 ? 1 : 0);
      }
    }),
    { numRuns: 300 },
  );
});

test("an ended scheduler leaves no timer, though it keeps idle ones for the next task", () => {
  const pending = new Set<object>();
  const clock: Clock = {
    monotonicMs: () => 0,
    wallMs: () => 0,
    timerSlackMs: 1,
    setTimer() {
      const timer = {};
      pending.add(timer);
      const keepAlive = (): void => undefined;
      return Object.assign(() => void pending.delete(timer), { keepAlive });
    },
  };
  const scheduler = new TimerScheduler(clock);
  scheduler.cancel(scheduler.at(500, true, () => undefined));
  expect(pending.size).toBeGreaterThan(0);
  scheduler.end();
  expect(pending.size).toBe(0);
  // It sets a timer again if a task is added after the end.
  scheduler.at(500, false, () => undefined);
  expect(pending.size).toBe(1);
});
