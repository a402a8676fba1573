import { describe, expect, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import {
  createLocks,
  InvalidOptionError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} from "../../src/index.ts";
import {
  type Ledger,
  type Run,
  schedule,
  type Schedule,
  type ScheduleEventName,
  type ScheduleOptions,
} from "../../src/schedule/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { type ManualClock, manualRuntime, settle } from "../../src/testing/index.ts";

const second = 1_000;
const minute = 60_000;
const hour = 3_600_000;
const start = Date.UTC(2030, 0, 1, 12, 0, 0, 500);

interface Scene {
  readonly clock: ManualClock;
  readonly open: () => Locks;
}

function scene(): Scene {
  const { runtime, clock } = manualRuntime({ wallMs: start });
  const store = memory();
  return { clock, open: () => createLocks(store, { runtime }) };
}

/** Collects the ticks of the events of some kinds, such as "missed 12:00:10 late". */
function collect(running: Schedule, ...names: readonly ScheduleEventName[]): string[] {
  const seen: string[] = [];
  for (const name of names) {
    running.on(name, (event) => {
      const { tick, reason } = event as { readonly tick?: Date; readonly reason?: string };
      const parts = [name.replace("tick-", ""), tick === undefined ? "" : time(tick), reason];
      seen.push(parts.filter((part) => part !== undefined && part !== "").join(" "));
    });
  }
  return seen;
}

function time(tick: Date): string {
  return tick.toISOString().slice(11, 19);
}

/** Work that notes its ticks. */
function noting(ticks: string[]): (run: Run) => void {
  return ({ tick }) => void ticks.push(time(tick));
}

describe("a schedule", () => {
  test("runs each tick in one process of several, and shares the ticks", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const fences: bigint[] = [];
    const work = ({ tick, lease, attempt, signal }: Run): void => {
      expect([attempt, signal.aborted]).toEqual([1, false]);
      fences.push(lease.fence);
      ticks.push(time(tick));
    };
    const members = [1, 2, 3].map(() => schedule(open(), "report", { every: "10s" }, work));
    await settle();
    expect(members[0]?.next).toEqual(new Date(Date.UTC(2030, 0, 1, 12, 0, 10)));
    await clock.advance(35 * second);
    expect(ticks).toEqual(["12:00:10", "12:00:20", "12:00:30"]);
    expect(fences).toEqual([...fences].toSorted((a, b) => (a < b ? -1 : 1)));
    await Promise.all(members.map((member) => member.stop()));
    expect(members[0]?.next).toBeUndefined();
    expect(clock.pendingTimers).toBe(0);
  });

  test("has its ticks at multiples since 1970 plus the offset", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "15m", offset: "2m" }, noting(ticks));
    await clock.advance(hour);
    expect(ticks).toEqual(["12:02:00", "12:17:00", "12:32:00", "12:47:00"]);
    await running.stop();
  });

  test("runs at the times of a cron library, and ends when it has no more", async () => {
    const { clock, open } = scene();
    // A day whose second 02:30 comes an hour after the first: the library decides about that.
    const times = [10, 20, 3_620].map((after) => start - 500 + after * second);
    const at = {
      nextRun(after: Date): Date | null {
        const next = times.find((each) => each > after.getTime());
        return next === undefined ? null : new Date(next);
      },
    };
    const ticks: string[] = [];
    const running = schedule(open(), "a", { at }, noting(ticks));
    await clock.advance(2 * hour);
    expect(ticks).toEqual(["12:00:10", "12:00:20", "13:00:20"]);
    expect(running.next).toBeUndefined();
    await running.stop();
    expect(clock.pendingTimers).toBe(0);
  });

  test("begins with the next tick, or at once if it is to run immediately", async () => {
    const { clock, open } = scene();
    const [later, now]: [string[], string[]] = [[], []];
    const first = schedule(open(), "a", { every: "10m" }, noting(later));
    const other_ = schedule(open(), "b", { every: "10m", immediately: true }, noting(now));
    await clock.advance(second);
    expect([later, now]).toEqual([[], ["12:00:00"]]);
    // Only if no tick was ever begun.
    const third = schedule(open(), "b", { every: "10m", immediately: true }, noting(now));
    await clock.advance(second);
    expect(now).toEqual(["12:00:00"]);
    await Promise.all([first.stop(), other_.stop(), third.stop()]);
  });

  test.each([1, 5])("runs no tick twice if clocks are %i s ahead and behind", async (seconds) => {
    const store = memory();
    const ticks: string[] = [];
    const runtimes = [0, -seconds, seconds].map((skew) =>
      manualRuntime({ wallMs: start + skew * second }),
    );
    const running = runtimes.map(({ runtime }) =>
      schedule(createLocks(store, { runtime }), "a", { every: "10s" }, noting(ticks)),
    );
    for (let step = 0; step < 600; step += 1) {
      for (const { clock } of runtimes) await clock.advance(100);
    }
    await Promise.all(running.map((each) => each.stop()));
    expect(ticks).toEqual([...new Set(ticks)]);
    expect(ticks.length).toBeGreaterThanOrEqual(6);
  });

  test("runs also if the only process has a clock that is ahead of that of the store", async () => {
    const store = memory();
    const [own, ahead] = [{ wallMs: start }, { wallMs: start + 5 * second }].map(manualRuntime);
    if (own === undefined || ahead === undefined) throw new Error("no runtime");
    const opened = createLocks(store, { runtime: own.runtime });
    const ledger: Ledger = {
      last: async () => undefined,
      raise: async (_name, _value, _lease, dueMs) =>
        dueMs > own.clock.wallMs() + second ? "early" : "raised",
    };
    const locks = createLocks(store, { runtime: ahead.runtime });
    const ticks: number[] = [];
    const running = schedule(locks, "a", { every: "1s", ledger }, ({ tick }) => {
      ticks.push(tick.getTime() - own.clock.wallMs());
    });
    for (let step = 0; step < 300; step += 1) {
      for (const { clock } of [own, ahead]) await clock.advance(100);
    }
    expect(ticks.length).toBeGreaterThan(10);
    expect(Math.max(...ticks)).toBeLessThanOrEqual(second);
    await running.stop();
    await opened.close();
  });

  test("passes over ticks that come during a run, and reports them", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "10s" }, slow(clock, ticks, 25 * second));
    const seen = collect(running, "tick-skipped", "tick-missed");
    await clock.advance(50 * second);
    expect(ticks).toEqual(["12:00:10", "12:00:40"]);
    expect(seen).toEqual(["skipped 12:00:20", "skipped 12:00:30"]);
    const stopped = running.stop();
    await clock.advance(minute);
    await stopped;
  });

  test("runs a tick that came during a run after it, if it is to", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const options = { every: "10s", overlap: "after" } as const;
    const running = schedule(open(), "a", options, slow(clock, ticks, 12 * second));
    await clock.advance(40 * second);
    expect(ticks).toEqual(["12:00:10", "12:00:20", "12:00:30"]);
    const stopped = running.stop();
    await clock.advance(minute);
    await stopped;
  });

  test.each([
    ["latest", ["12:05:00"], ["missed 12:02:00 passed-over", "missed 12:03:00 passed-over"]],
    ["all", ["12:02:00", "12:03:00", "12:04:00", "12:05:00"], []],
    ["skip", [], ["missed 12:02:00 passed-over", "missed 12:03:00 passed-over"]],
  ] as const)("that was down handles what it missed: %s", async (missed, expected, reported) => {
    const { clock, open } = scene();
    const before = schedule(open(), "a", { every: "1m" }, () => undefined);
    await clock.advance(90 * second);
    await before.stop();
    await clock.advance(4 * minute);
    const ticks: string[] = [];
    const options = { every: "1m", missed, grace: "20s" } as const;
    const running = schedule(open(), "a", options, noting(ticks));
    const seen = collect(running, "tick-missed");
    await clock.advance(second);
    expect(ticks).toEqual(expected);
    expect(seen.slice(0, 2)).toEqual(reported);
    if (missed === "skip") expect(seen.at(-1)).toBe("missed 12:05:00 late");
    // Each is reported once.
    const count = seen.length;
    await clock.advance(minute);
    expect(seen).toHaveLength(count);
    expect(ticks.at(-1)).toBe("12:06:00");
    await running.stop();
  });

  test("reports ticks that are too old to run, and goes on with the next", async () => {
    const { clock, open } = scene();
    const before = schedule(open(), "a", { every: "1h" }, () => undefined);
    await clock.advance(hour);
    await before.stop();
    await clock.advance(5 * hour);
    const ticks: string[] = [];
    const options = { every: "1h", within: "30m", missed: "all" } as const;
    await clock.advance(40 * minute);
    const running = schedule(open(), "a", options, noting(ticks));
    const seen = collect(running, "tick-missed");
    await clock.advance(second);
    expect([ticks, seen]).toEqual([[], ["missed 18:00:00 too-old"]]);
    await clock.advance(hour);
    expect(ticks).toEqual(["19:00:00"]);
    expect(seen).toHaveLength(1);
    await running.stop();
  });

  test("of a machine that was suspended shows what it missed", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "1m" }, noting(ticks));
    const seen = collect(running, "tick-missed");
    await clock.advance(90 * second);
    clock.pause(3 * minute);
    await clock.advance(second);
    expect(ticks).toEqual(["12:01:00", "12:04:00"]);
    expect(seen).toEqual(["missed 12:02:00 passed-over", "missed 12:03:00 passed-over"]);
    await running.stop();
  });

  test("does not run a tick again when the clock is set back", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "1m" }, noting(ticks));
    await clock.advance(150 * second);
    clock.stepWall(-2 * minute);
    const again = schedule(open(), "a", { every: "1m" }, noting(ticks));
    await clock.advance(4 * minute);
    expect(ticks).toEqual(["12:01:00", "12:02:00", "12:03:00", "12:04:00"]);
    await Promise.all([running.stop(), again.stop()]);
  });
});

/** Work that takes a while. */
function slow(clock: ManualClock, ticks: string[], ms: number): (run: Run) => Promise<void> {
  return async ({ tick }) => {
    ticks.push(time(tick));
    await new Promise<void>((done) => clock.setTimer(ms, true, done));
  };
}

describe("a tick whose work fails", () => {
  const error = new Error("no database");

  test("is not run again by default, and its error is reported", async () => {
    const { clock, open } = scene();
    const runs: number[] = [];
    const running = schedule(open(), "a", { every: "1m" }, ({ attempt }) => {
      runs.push(attempt);
      throw error;
    });
    const errors: unknown[] = [];
    running.on("tick-failed", (event) => errors.push([event.error, event.retryInMs]));
    const seen = collect(running, "tick-missed", "tick-done");
    await clock.advance(2 * minute);
    expect(runs).toEqual([1, 1]);
    expect(errors).toEqual([
      [error, undefined],
      [error, undefined],
    ]);
    expect(seen).toEqual([]);
    await running.stop();
  });

  test("is run again up to `tries` times", async () => {
    const { clock, open } = scene();
    const runs: number[] = [];
    const running = schedule(open(), "a", { every: "1m", tries: 3 }, ({ attempt }) => {
      runs.push(attempt);
      throw error;
    });
    collect(running, "tick-failed");
    await clock.advance(110 * second);
    expect(runs).toEqual([1, 2, 3]);
    await running.stop();
  });
});

describe("a tick whose process dies in it", () => {
  /** Leaves a run behind that never ends, in a process whose lease is lost. */
  async function crash({ clock, open }: Scene, options: ScheduleOptions): Promise<void> {
    const locks = open();
    const running = schedule(locks, "a", options, () => new Promise(() => undefined));
    collect(running, "schedule-failed");
    await clock.advance(minute);
    void running.stop();
    await open().break("a");
  }

  test("is lost and reported once, if it is to begin at most once", async () => {
    const world = scene();
    const { clock, open } = world;
    await crash(world, { every: "1m" });
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "1m" }, noting(ticks));
    const seen = collect(running, "tick-missed");
    await clock.advance(3 * minute);
    expect(ticks).toEqual(["12:02:00", "12:03:00", "12:04:00"]);
    expect(seen).toEqual(["missed 12:01:00 crashed"]);
    await running.stop();
  });

  test("is begun again by the next process, as often as `tries` allows", async () => {
    const world = scene();
    const { clock, open } = world;
    const options = { every: "1m", tries: 2 } as const;
    await crash(world, options);
    const runs: string[] = [];
    const running = schedule(open(), "a", options, ({ tick, attempt }) => {
      runs.push(`${time(tick)} ${attempt}`);
    });
    const seen = collect(running, "tick-missed");
    await clock.advance(minute);
    expect(runs).toEqual(["12:01:00 2", "12:02:00 1"]);
    expect(seen).toEqual([]);
    await running.stop();
  });
});

describe("a schedule with a ledger of its own", () => {
  /** A ledger in this process, which the test can break. */
  class OwnLedger implements Ledger {
    value: number | undefined;
    fence = 0n;
    broken = false;

    async last(): Promise<number | undefined> {
      if (this.broken) throw new StoreError("the database is away");
      return this.value;
    }

    async raise(
      _name: string,
      value: number,
      { fence }: { readonly fence: bigint },
    ): Promise<"raised" | "refused"> {
      const same = value === this.value && fence === this.fence;
      const later = value > (this.value ?? 0) && fence >= this.fence;
      if (!same && !later) return "refused";
      this.value = value;
      this.fence = fence;
      return "raised";
    }
  }

  test("needs no marks of the store", async () => {
    const { runtime, clock } = manualRuntime({ wallMs: start });
    const capabilities = { ...memory().capabilities, marks: false };
    const locks = createLocks({ ...memory(), capabilities }, { runtime });
    const ticks: string[] = [];
    const call = (): Schedule => schedule(locks, "a", { every: "1m" }, noting(ticks));
    expect(call).toThrow(UnsupportedError);
    expect(call).toThrow("pass a `ledger`");
    const ledger = new OwnLedger();
    const running = schedule(locks, "a", { every: "1m", ledger }, noting(ticks));
    await clock.advance(2 * minute);
    expect(ticks).toEqual(["12:01:00", "12:02:00"]);
    await running.stop();
  });

  test("reports its faults, and runs the tick when they are over", async () => {
    const { clock, open } = scene();
    const ledger = new OwnLedger();
    ledger.broken = true;
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "10m", ledger }, noting(ticks));
    const pauses: (number | undefined)[] = [];
    running.on("schedule-failed", ({ retryInMs }) => pauses.push(retryInMs));
    await clock.advance(10 * minute + 4 * second);
    ledger.broken = false;
    await clock.advance(10 * second);
    expect(pauses.slice(-3)).toEqual([1_000, 2_000, 4_000]);
    expect(ticks).toEqual(["12:10:00"]);
    await running.stop();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe("the end of a schedule", () => {
  test("waits for the run that goes on", async () => {
    const { clock, open } = scene();
    const ticks: string[] = [];
    const running = schedule(open(), "a", { every: "10s" }, slow(clock, ticks, 5 * second));
    const seen = collect(running, "tick-done");
    await clock.advance(10 * second);
    const [once, again] = [running.stop(), running.stop()];
    expect(again).toBe(once);
    expect(seen).toEqual([]);
    await clock.advance(5 * second);
    await once;
    expect(seen).toEqual(["done 12:00:10"]);
  });

  test("does not wait for another try of a run that failed meanwhile", async () => {
    const { clock, open } = scene();
    let fail: (error: Error) => void = () => undefined;
    const running = schedule(open(), "a", { every: "10s", tries: 2 }, async () => {
      await new Promise((_, reject) => (fail = reject));
    });
    const seen = collect(running, "tick-failed");
    await clock.advance(10 * second);
    const stopped = running.stop();
    fail(new Error("no database"));
    await stopped;
    expect(seen).toEqual(["failed 12:00:10"]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("comes with the signal, and with the close of the manager", async () => {
    const { clock, open } = scene();
    const controller = new AbortController();
    const [one, other] = [open(), open()];
    const { signal } = controller;
    const first = schedule(one, "a", { every: "10s", signal }, () => undefined);
    const reasons: unknown[] = [];
    const other_ = schedule(other, "b", { every: "10s" }, async (run) => {
      await new Promise<void>((done) => run.signal.addEventListener("abort", () => done()));
      reasons.push(run.signal.reason);
    });
    collect(other_, "schedule-failed", "tick-failed");
    await clock.advance(10 * second);
    controller.abort();
    await settle();
    expect(first.next).toBeUndefined();
    await other.close();
    await other_.stop();
    expect(reasons).toMatchObject([{ code: "CLOSED" }]);
    expect(clock.pendingTimers).toBe(0);
    const third = schedule(open(), "c", { every: "10s", signal }, () => undefined);
    await third.stop();
  });

  test("aborts the signal of a run whose lease is lost", async () => {
    const { clock, open } = scene();
    const reasons: unknown[] = [];
    const running = schedule(open(), "a", { every: "1m" }, async ({ signal }) => {
      await new Promise<void>((done) => signal.addEventListener("abort", () => done()));
      reasons.push(signal.reason);
    });
    await clock.advance(minute);
    await open().break("a");
    await clock.advance(20 * second);
    expect(reasons).toEqual([expect.any(LeaseLostError)]);
    await running.stop();
  });
});

describe("wrong arguments of schedule", () => {
  const at = { nextRun: () => null };
  const wrong: readonly (readonly [string, object])[] = [
    ["every", {}],
    ["every", { every: 1 }],
    ["offset", { every: "1m", offset: "1m" }],
    ["at", { at: "0 3 * * *" }],
    ["at", { at, every: "1m" }],
    ["missed", { at, missed: "none" }],
    ["overlap", { at, overlap: "run" }],
    ["tries", { at, tries: 0 }],
    ["tries", { at, tries: 15 }],
    ["grace", { at, grace: 0 }],
    ["within", { at, within: 0 }],
    ["immediately", { at, immediately: "yes" }],
    ["ledger", { at, ledger: {} }],
    ["ttl", { at, ttl: "1h" }],
    ["signal", { at, signal: 1 }],
    ["cron", { cron: "0 3 * * *" }],
  ];
  test.each(wrong)("are refused at once: %s in %o", (option, options) => {
    const { open, clock } = scene();
    const call = (): Schedule => schedule(open(), "a", options as ScheduleOptions, () => undefined);
    expect(call).toThrow(InvalidOptionError);
    expect(call).toThrow(expect.objectContaining({ option }));
    expect(clock.pendingTimers).toBe(0);
  });

  test("include a store without fences, and a library that does not go forward", async () => {
    const { runtime, clock } = manualRuntime({ wallMs: start });
    const store = memory();
    const capabilities = { ...store.capabilities, fencing: false };
    const locks = createLocks({ ...store, capabilities }, { runtime });
    const call = (): Schedule => schedule(locks, "a", { every: "1m" }, () => undefined);
    expect(call).toThrow(UnsupportedError);
    const stuck = { nextRun: (after: Date) => after };
    const running = schedule(createLocks(store, { runtime }), "a", { at: stuck }, () => undefined);
    const errors: unknown[] = [];
    running.on("schedule-failed", ({ error }) => errors.push(error));
    await clock.advance(second);
    expect(errors).toEqual([expect.any(InvalidOptionError)]);
    expect(running.next).toBeUndefined();
  });
});
