import { describe, expect, test } from "vitest";
import type { AttemptOutcome, Waiting } from "../../src/core/store.ts";
import { QuorumError, StoreError } from "../../src/index.ts";
import { settle } from "../../src/testing/index.ts";
import { deferred } from "./fake-store.ts";
import { attemptOn, lockTable, neverAskAgain, note, type Table } from "./lock-table.ts";

/** Records the calls of one wait, and keeps the listener that notifies it. */
interface Place {
  readonly resources: readonly string[];
  attempts: number[];
  leaves: number;
  listener: (() => void) | undefined;
}

interface Queued extends Table {
  readonly places: Place[];
  /** Outcomes for the next attempts with a queue entry, before the store decides itself. */
  readonly answers: (AttemptOutcome | Promise<AttemptOutcome>)[];
}

/** Returns a store with a queue, which notifies a waiter only when the test calls its listener. */
function queued(freeIn: number | "unknown" = Infinity, rank?: number): Queued {
  const retryInMs = freeIn === "unknown" ? undefined : freeIn;
  const places: Place[] = [];
  const answers: (AttemptOutcome | Promise<AttemptOutcome>)[] = [];
  const table = lockTable((own) => ({
    waiting(resources): Waiting | undefined {
      if (resources.includes("no queue")) return undefined;
      const place: Place = { resources, attempts: [], leaves: 0, listener: undefined };
      places.push(place);
      return {
        async attempt(request) {
          place.attempts.push(own().clock.monotonicMs());
          const outcome = (await answers.shift()) ?? attemptOn(own(), request);
          return outcome.kind === "held" ? { ...outcome, retryInMs, rank } : outcome;
        },
        listen(listener) {
          place.listener = listener;
        },
        async leave() {
          place.leaves += 1;
        },
      };
    },
  }));
  return { ...table, places, answers };
}

/** Returns the pauses between the attempts of a waiter. */
function pausesOf(place: Place | undefined): number[] {
  const at = place?.attempts ?? [];
  return at.slice(1).map((atMs, index) => atMs - (at[index] ?? 0));
}

describe("a wait in the store's queue", () => {
  test("begins with an attempt without a queue entry, and makes one with it at once", async () => {
    const { locks, clock, places, asked } = queued();
    const holder = await locks.acquire("a");
    const waiting = locks.acquire("a");
    await settle();
    expect([asked(), places.map(({ attempts }) => attempts)]).toEqual([2, [[0]]]);
    expect(places[0]?.listener).toBeTypeOf("function");
    await holder.release();
    const lease = await waiting;
    expect([clock.monotonicMs(), asked(), places[0]?.attempts.length]).toEqual([0, 2, 2]);
    // A granted waiter does not leave: its queue entry is removed with the release.
    await lease.release();
    expect([places[0]?.leaves, places[0]?.listener, clock.pendingTimers]).toEqual([
      0,
      undefined,
      0,
    ]);
    await locks.close();
  });

  test("has its queue entry from the start, before its turn in the manager's own queue", async () => {
    const { locks, places } = queued();
    const holder = await locks.acquire("a");
    const waiting = [locks.acquire("a")];
    await settle();
    waiting.push(locks.acquire("a"), locks.acquire("a"));
    await settle();
    // Tickets are drawn in the order of the calls. Only the first call has made an attempt.
    expect(places.map(({ attempts }) => attempts.length)).toEqual([1, 0, 0]);
    await holder.release();
    for (const call of waiting) await (await call).release();
    expect(places.map(({ attempts }) => attempts.length)).toEqual([2, 1, 1]);
    await locks.close();
  });

  test("makes one attempt for each notification, and none before", async () => {
    const { locks, clock, places, entries } = queued();
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const waiting = locks.acquire("a");
    await settle();
    const [place] = places;
    for (let notified = 1; notified <= 5; notified += 1) {
      const { listener } = place ?? {};
      listener?.();
      // A second node may send the same notification.
      listener?.();
      await settle();
      expect(place?.attempts).toHaveLength(1 + notified);
    }
    entries.clear();
    place?.listener?.();
    await (await waiting).release();
    expect(clock.monotonicMs()).toBe(0);
    await locks.close();
  });

  test("repeats its attempt if a lease of its manager ends while one is under way", async () => {
    const { locks, places, answers, entries } = queued();
    const holder = await locks.acquire("a");
    const slow = deferred<AttemptOutcome>();
    answers.push(slow.promise);
    const waiting = locks.acquire("a");
    await settle();
    await holder.release();
    expect(entries.size).toBe(0);
    slow.resolve({ kind: "held", holder: undefined, cleanup: undefined });
    await (await waiting).release();
    expect(places[0]?.attempts).toEqual([0, 0]);
    await locks.close();
  });

  test("makes an attempt one or two milliseconds after the holder's time is over", async () => {
    const { locks, clock, places, entries } = queued(500);
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const call = locks.acquire("a", { wait: 400, retry: { minDelay: 900, maxDelay: 900 } });
    const ended = call.catch((error: unknown) => error);
    await clock.advance(0);
    expect(places[0]?.attempts).toEqual([0]);
    await clock.advance(400);
    expect(await ended).toMatchObject({ code: "ACQUIRE_TIMEOUT", waitedMs: 400, attempts: 3 });
    const second = locks.acquire("a", { wait: 510, retry: { minDelay: 900, maxDelay: 900 } });
    const over = second.catch((error: unknown) => error);
    await clock.advance(510);
    await over;
    const [first = 0, next = 0] = places[1]?.attempts ?? [];
    expect(next - first).toBeGreaterThan(500);
    expect(next - first).toBeLessThan(502);
    expect(places.every(({ leaves }) => leaves > 0)).toBe(true);
    await locks.close();
  });

  test.each([
    { freeIn: 7, leastMs: 7, mostMs: 9, who: "of a dead holder: when its time is over" },
    { freeIn: 5_000, leastMs: 100, mostMs: 300, who: "of rivals: after a random pause" },
  ])("repeats its attempt after a split vote, with the other votes $who", async (votes) => {
    const { locks, clock, places, entries, answers } = queued(votes.freeIn);
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const split = { kind: "held", holder: undefined, split: true, cleanup: undefined } as const;
    answers.push(split);
    const call = locks.acquire("a", { retry: { minDelay: 100, maxDelay: 10_000 } });
    await settle();
    entries.delete("a");
    await clock.advance(300);
    await (await call).release();
    const [first = 0, next = 0] = places[0]?.attempts ?? [];
    expect(next - first).toBeGreaterThanOrEqual(votes.leastMs);
    expect(next - first).toBeLessThanOrEqual(votes.mostMs);
    await locks.close();
  });

  test.each([
    { maxDelay: 200, leastMs: 150, mostMs: 250 },
    { maxDelay: 10_000, leastMs: 750, mostMs: 1_250 },
  ])(
    "polls every $maxDelay ms, at least every second, so a lost notification costs only time",
    async (pace) => {
      const { locks, clock, places, entries } = queued();
      entries.set("a", { owner: "foreign", untilMs: Infinity });
      const retry = { minDelay: 10, maxDelay: pace.maxDelay } as const;
      const waiting = locks.acquire("a", { retry });
      await clock.advance(20_000);
      const at = places[0]?.attempts ?? [];
      const pauses = at.slice(1).map((atMs, index) => atMs - (at[index] ?? 0));
      expect(pauses.length).toBeGreaterThan(10);
      expect(Math.min(...pauses)).toBeGreaterThanOrEqual(pace.leastMs);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(pace.mostMs);
      entries.clear();
      await clock.advance(2_000);
      await (await waiting).release();
      await locks.close();
    },
  );

  test("polls every minDelay while a client of another library holds the lock", async () => {
    const { locks, clock, places, entries } = queued(Infinity, 0);
    entries.set("a", { owner: "by hand", untilMs: Infinity, foreign: true });
    const waiting = locks.acquire("a", { retry: { minDelay: 10, maxDelay: 200 } });
    await clock.advance(2_000);
    const pauses = pausesOf(places[0]);
    expect(pauses.length).toBeGreaterThan(150);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(7.5);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(12.5);
    // With jitter, so that two waiters that began together poll at different times.
    expect(new Set(pauses).size).toBeGreaterThan(100);
    entries.set("a", { owner: "another manager", untilMs: Infinity });
    await clock.advance(20);
    const before = places[0]?.attempts.length ?? 0;
    await clock.advance(2_000);
    const since = (places[0]?.attempts.length ?? 0) - before;
    expect(since).toBeLessThanOrEqual(2_000 / 150 + 1);
    entries.clear();
    await clock.advance(2_000);
    await (await waiting).release();
    await locks.close();
  });

  test.each([1, 4, undefined])(
    "does not poll faster with rank %s, because only the first waiter does",
    async (rank) => {
      const { locks, clock, places, entries } = queued(Infinity, rank);
      entries.set("a", { owner: "by hand", untilMs: Infinity, foreign: true });
      const waiting = locks.acquire("a", { retry: { minDelay: 10, maxDelay: 200 } });
      await clock.advance(20_000);
      expect(Math.min(...pausesOf(places[0]))).toBeGreaterThanOrEqual(150);
      entries.clear();
      await clock.advance(5_000);
      await (await waiting).release();
      await locks.close();
    },
  );

  const ranks = [
    { rank: 0, leastMs: 150, mostMs: 250 },
    { rank: 1, leastMs: 300, mostMs: 500 },
    { rank: 4, leastMs: 750, mostMs: 1_250 },
    { rank: 4_999, leastMs: 3_000, mostMs: 5_000 },
  ];
  test.each(ranks)("polls every $leastMs to $mostMs ms behind $rank others", async (pace) => {
    const { locks, clock, places, entries } = queued(Infinity, pace.rank);
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const waiting = locks.acquire("a", { retry: { minDelay: 10, maxDelay: 200 } });
    await clock.advance(60_000);
    const pauses = pausesOf(places[0]);
    expect(pauses.length).toBeGreaterThan(10);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(pace.leastMs);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(pace.mostMs);
    entries.clear();
    await clock.advance(5_000);
    await (await waiting).release();
    await locks.close();
  });

  const expiries = [
    { rank: 0, leastMs: 50, mostMs: 52 },
    { rank: 1, leastMs: 57, mostMs: 64 },
    { rank: 2, leastMs: 65, mostMs: 77 },
    { rank: 3, leastMs: 600, mostMs: 1_000 },
    { rank: 500, leastMs: 3_000, mostMs: 5_000 },
  ];
  test.each(expiries)(
    "makes an attempt after $leastMs to $mostMs ms behind $rank others, if the holder has 50 ms left",
    async ({ rank, leastMs, mostMs }) => {
      const { locks, clock, places, entries } = queued(50, rank);
      entries.set("a", { owner: "foreign", untilMs: Infinity });
      const call = locks.acquire("a", { wait: "6s", retry: { minDelay: 10, maxDelay: 200 } });
      const ended = call.catch((error: unknown) => error);
      await clock.advance(6_000);
      await ended;
      const [first = 0] = pausesOf(places[0]);
      expect(first).toBeGreaterThanOrEqual(leastMs);
      expect(first).toBeLessThanOrEqual(mostMs);
      await locks.close();
    },
  );

  test("makes an attempt when the first waiter's time is over, if it finds the lock free", async () => {
    const { locks, clock, places, answers, entries } = queued(150, 500);
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const free = { kind: "held", holder: undefined, cleanup: undefined } as const;
    answers.push(free, free, free);
    const call = locks.acquire("a", { wait: "1s" }).catch((error: unknown) => error);
    await clock.advance(1_000);
    await call;
    const pauses = pausesOf(places[0]).slice(0, 3);
    expect(pauses).toHaveLength(3);
    for (const ms of pauses) {
      expect(ms).toBeGreaterThanOrEqual(150);
      expect(ms).toBeLessThanOrEqual(190);
    }
    await locks.close();
  });

  test.each(["a split vote", "a fault"])("spaces its attempts at random after %s", async (what) => {
    const { locks, clock, places, entries, answers } = queued("unknown");
    const split: AttemptOutcome = { kind: "held", holder: undefined, cleanup: undefined };
    if (what === "a fault") {
      const error = new QuorumError("acquire", ["a"], [], { quorum: 1 });
      const broken: AttemptOutcome = {
        kind: "failed",
        error,
        retryable: true,
        cleanup: undefined,
      };
      answers.push(...Array.from({ length: 20 }, () => broken));
    } else {
      answers.push(...Array.from({ length: 20 }, () => split));
    }
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const retry = { minDelay: 20, maxDelay: 40 };
    const waiting = locks.acquire("a", { retry });
    await clock.advance(300);
    const at = places[0]?.attempts ?? [];
    const pauses = at.slice(1).map((atMs, index) => atMs - (at[index] ?? 0));
    expect(pauses.length).toBeGreaterThan(5);
    expect(new Set(pauses).size).toBeGreaterThan(3);
    for (const pauseMs of pauses) expect(pauseMs >= 20 && pauseMs <= 40).toBe(true);
    entries.clear();
    answers.length = 0;
    await clock.advance(40);
    await (await waiting).release();
    await locks.close();
  });

  test("leaves the queue if it is aborted, out of time, closed or hopeless", async () => {
    const { locks, clock, places, entries, answers } = queued();
    entries.set("a", { owner: "foreign", untilMs: Infinity });
    const controller = new AbortController();
    const done: string[] = [];
    const calls = [
      note(done, "aborted", locks.acquire("a", { signal: controller.signal })),
      note(done, "late", locks.acquire("a", { wait: 100 })),
      note(done, "closed", locks.acquire("a")),
    ];
    await settle();
    controller.abort(new DOMException("enough", "Enough"));
    await settle();
    await clock.advance(100);
    expect(done).toEqual(["aborted: Enough", "late: AcquireTimeoutError"]);
    const error = new StoreError("broken for good");
    answers.push({ kind: "failed", error, retryable: false, cleanup: undefined });
    entries.set("b", { owner: "foreign", untilMs: Infinity });
    await expect(locks.acquire("b")).rejects.toThrow("broken for good");
    await locks.close();
    await Promise.all(calls);
    for (const { leaves, listener } of places) {
      expect(leaves).toBeGreaterThan(0);
      expect(listener).toBeUndefined();
    }
    expect([places.length, clock.pendingTimers]).toEqual([4, 0]);
  });

  test("polls with the pauses of retry if the store has no queue for the resource", async () => {
    const { locks, clock, places, entries, times } = queued();
    entries.set("no queue", { owner: "foreign", untilMs: Infinity });
    const waiting = locks.acquire("no queue", { retry: { minDelay: 30, maxDelay: 60 } });
    await clock.advance(300);
    expect(places).toEqual([]);
    expect(times("attempt").length).toBeGreaterThan(4);
    entries.clear();
    await clock.advance(60);
    await (await waiting).release();
    await locks.close();
  });

  test("is not used for tryAcquire or wait: 0", async () => {
    const { locks, places } = queued();
    const holder = await locks.acquire("a");
    expect(await locks.tryAcquire("a")).toBeUndefined();
    await expect(locks.acquire("a", { wait: 0, retry: neverAskAgain })).rejects.toThrow();
    expect(places).toEqual([]);
    await holder.release();
    await locks.close();
  });
});
