import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Backoff } from "../../src/core/acquire/backoff.ts";
import { SeededRandom } from "../../src/testing/index.ts";

test("every pause is within the bounds, and at most three times the one before", () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 500 }), fc.nat(5_000), (seed, minMs, more) => {
      const backoff = new Backoff(new SeededRandom(seed), minMs, minMs + more);
      let before = minMs;
      for (let turn = 0; turn < 50; turn += 1) {
        const pauseMs = backoff.nextMs();
        expect(pauseMs).toBeGreaterThanOrEqual(minMs);
        expect(pauseMs).toBeLessThanOrEqual(Math.min(minMs + more, before * 3));
        before = pauseMs;
      }
    }),
  );
});

test("pauses vary between both bounds, and do not settle at either", () => {
  const backoff = new Backoff(new SeededRandom(3), 10, 200);
  const pauses = Array.from({ length: 1_000 }, () => backoff.nextMs());
  expect(pauses.filter((ms) => ms > 150).length).toBeGreaterThan(50);
  expect(pauses.filter((ms) => ms < 30).length).toBeGreaterThan(50);
});

test("two rivals that began together soon pause for different times", () => {
  const [one, other] = [1, 2].map((seed) => new Backoff(new SeededRandom(seed), 10, 200));
  expect(one?.nextMs()).not.toBe(other?.nextMs());
});

test("a store that notifies reliably sets the pause of its waiters, by their rank", () => {
  const backoff = new Backoff(new SeededRandom(5), 10, 200);
  const pauseMs = (rank: number): number => {
    const held = { kind: "held", holder: undefined, cleanup: undefined } as const;
    return backoff.pauseMsAfter({ ...held, retryInMs: 60_000, rank, recheckMs: 1_000 }, true);
  };
  for (let turn = 0; turn < 20; turn += 1) {
    expect(pauseMs(0)).toBeGreaterThanOrEqual(750);
    expect(pauseMs(0)).toBeLessThanOrEqual(1_250);
    expect(pauseMs(1)).toBeGreaterThanOrEqual(1_500);
    expect(pauseMs(9)).toBeLessThanOrEqual(5_000);
  }
});
