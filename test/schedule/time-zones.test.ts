import { Cron } from "croner";
import { describe, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { schedule } from "../../src/schedule/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";

const hour = 3_600_000;

/**
 * Days with 23 or 25 hours (23.5 or 24.5 on Lord Howe). Whatever the library decides about the hour
 * that is missing or comes twice, each of its times is run once, in one of two processes.
 */
const days: readonly (readonly [string, string, string, number])[] = [
  ["Europe/Berlin", "2030-03-30T12:00:00Z", "30 2 * * *", 3],
  ["Europe/Berlin", "2030-10-26T12:00:00Z", "30 2 * * *", 3],
  ["America/New_York", "2030-03-09T12:00:00Z", "30 2 * * *", 3],
  ["America/New_York", "2030-11-02T12:00:00Z", "*/30 * * * *", 144],
  ["Australia/Lord_Howe", "2030-04-05T12:00:00Z", "45 1 * * *", 3],
  ["Australia/Lord_Howe", "2030-10-04T12:00:00Z", "15 2 * * *", 3],
];

describe("a schedule with the times of croner", () => {
  test.each(days)("in %s from %s, at %s", async (timezone, from, pattern, least) => {
    const wallMs = Date.parse(from);
    const { runtime, clock } = manualRuntime({ wallMs });
    const store = memory();
    const ticks: number[] = [];
    const running = [1, 2].map(() =>
      schedule(
        createLocks(store, { runtime }),
        "nightly",
        { at: new Cron(pattern, { timezone }) },
        ({ tick }) => void ticks.push(tick.getTime()),
      ),
    );
    await clock.advance(72 * hour);
    const expected: number[] = [];
    const library = new Cron(pattern, { timezone });
    for (let next = library.nextRun(new Date(wallMs)); next !== null;) {
      if (next.getTime() > wallMs + 72 * hour) break;
      expected.push(next.getTime());
      next = library.nextRun(next);
    }
    expect(expected.length).toBeGreaterThanOrEqual(least);
    expect(ticks).toEqual(expected);
    await Promise.all(running.map((each) => each.stop()));
    expect(clock.pendingTimers).toBe(0);
  });
});
