import { describe, expect, test } from "vitest";
import { faultRules, type FaultRule } from "../../faults/check/failures.ts";
import { findingsOf } from "../../faults/check/summary.ts";
import type { ClientEvent, History } from "../../faults/history.ts";
import { applied, fault, planted, tenure } from "./histories.ts";

/** A history that breaks the rule, and one that only just keeps it. */
interface Pair {
  readonly how: string;
  readonly broken: Partial<History>;
  readonly kept: Partial<History>;
}

const about = { who: "c1.0", lease: "c1.0/1", resource: "r" };

/** Adds a lease after all faults have healed. */
function events(...lists: readonly (readonly ClientEvent[])[]): Pick<History, "events"> {
  const all = [...lists.flat(), ...tenure("c9.0", 99, 6_000, 6_100)];
  return { events: all.toSorted((a, b) => a.t - b.t) };
}

/** Events of client 1, granted with fence 1 at 100 ms, with one more in the middle. */
function held(toMs: number, ...more: readonly ClientEvent[]): ClientEvent[] {
  return [...tenure("c1.0", 1, 100, toMs), ...more];
}

const confirmed = (startedMs: number): ClientEvent => {
  return { ...about, t: startedMs + 5, what: "prove", outcome: "proven", startedMs };
};
const reported = (ticksLate: number): ClientEvent => {
  return { ...about, t: 1_100, what: "reported", reason: "expired", untilMs: 1_100, ticksLate };
};
const looked = (t: number): ClientEvent => {
  return { ...about, t, what: "look", trusted: true, untilMs: 1_100 };
};
const silent = (ticksLate: number): ClientEvent[] =>
  tenure("c1.0", 1, 100, 300).map((event) =>
    event.what === "release" ? { ...event, ticksLate } : event,
  );
const answered = (outcome: string, t = 305): ClientEvent[] =>
  tenure("c1.0", 1, 100, 300).map((event) =>
    event.what === "released" ? { ...event, t, outcome, by: "release" } : event,
  );
const write = (op: string, phase: "accepted" | "refused" | "refused-claim"): ClientEvent => {
  return { ...about, t: 200, what: "write", register: "redis-fenced", op, phase, careful: true };
};
const called = (startedMs: number, lease: readonly ClientEvent[]): ClientEvent[] =>
  lease.map((event) => (event.what === "granted" ? { ...event, startedMs } : event));

/** Client 1 reads a register and writes "a" to it; client 2 reads `value` from it later. */
function registerUsed(value: string, phase: "accepted" | "refused" | "failed"): Partial<History> {
  const of = { register: "redis-fenced" } as const;
  const first = { ...about, ...of, op: "a" };
  const second = { who: "c2.0", lease: "c2.0/2", resource: "r", ...of, op: "b" };
  return {
    ...events(
      held(
        300,
        { ...first, t: 110, what: "read", phase: "call" },
        { ...first, t: 120, what: "read", phase: "done", value: "origin" },
        { ...first, t: 190, what: "write", phase: "call", careful: true },
        { ...first, t: 200, what: "write", phase, careful: true },
      ),
      tenure("c2.0", 2, 400, 500),
      [
        { ...second, t: 410, what: "read", phase: "call" },
        { ...second, t: 420, what: "read", phase: "done", value },
      ],
    ),
    applied: phase === "accepted" ? applied("redis-fenced", [["a", "origin", 1, 1n, 0n]]) : [],
  };
}

const after = (lockedMs: number): Partial<History> => {
  return { events: tenure("c1.0", 1, lockedMs, lockedMs + 50) };
};

const pairs: Readonly<Record<FaultRule, readonly Pair[]>> = {
  "mutex-model": [
    {
      how: "two leases overlap",
      broken: events(held(900), tenure("c2.0", 2, 500, 1_000)),
      kept: events(held(499), tenure("c2.0", 2, 500, 1_000)),
    },
    {
      how: "leases overlap after a node lost its data",
      broken: {
        ...events(held(900), tenure("c2.0", 2, 500, 1_000)),
        faults: fault("kill-empty", 200, 300),
      },
      kept: {
        ...events(held(900), tenure("c2.0", 2, 500, 1_000)),
        faults: fault("evict", 200, 300),
      },
    },
  ],
  "fence-order": [
    {
      how: "a later grant has the smaller fence",
      broken: events(tenure("c1.0", 7, 100, 200), tenure("c2.0", 6, 300, 400)),
      kept: events(tenure("c1.0", 7, 100, 200), tenure("c2.0", 8, 300, 400)),
    },
  ],
  "fence-unique": [
    {
      how: "two grants have one fence",
      broken: events(tenure("c1.0", 7, 100, 200), tenure("c2.0", 7, 300, 400)),
      kept: events(tenure("c1.0", 7, 100, 200), tenure("c2.0", 8, 300, 400)),
    },
  ],
  "stale-confirmation": [
    {
      how: "a proof begins after another client was granted the resource",
      broken: events(held(900, confirmed(550)), tenure("c2.0", 2, 500, 600)),
      kept: events(held(490, confirmed(480)), tenure("c2.0", 2, 500, 600)),
    },
  ],
  overlap: [
    {
      how: "two leases overlap",
      broken: events(held(900), tenure("c2.0", 2, 500, 1_000)),
      kept: events(held(499), tenure("c2.0", 2, 500, 1_000)),
    },
  ],
  "no-order": [
    {
      how: "of two leases whose calls overlap, the later holder has the smaller fence",
      broken: events(
        called(100, tenure("c1.0", 5, 200, 300)),
        called(150, tenure("c2.0", 4, 310, 400)),
      ),
      kept: events(
        called(100, tenure("c1.0", 5, 200, 300)),
        called(150, tenure("c2.0", 6, 310, 400)),
      ),
    },
    {
      how: "a register returns a write that was overwritten before the read",
      broken: registerUsed("origin", "accepted"),
      kept: registerUsed("a", "accepted"),
    },
    {
      how: "a guard refuses a fence although it has seen no greater one",
      broken: registerUsed("origin", "refused"),
      kept: registerUsed("origin", "failed"),
    },
  ],
  "trusted-after-end": [
    {
      how: "a look finds the lease valid after its end",
      broken: events(held(1_101, looked(1_101))),
      kept: events(held(1_101, looked(1_100))),
    },
  ],
  "late-report": [
    {
      how: "the signal comes two ticks after the end",
      broken: events(held(1_101, reported(2))),
      kept: events(held(1_101, reported(1))),
    },
    { how: "the signal never comes", broken: events(silent(2)), kept: events(silent(1)) },
  ],
  "false-loss": [
    {
      how: "a release reports a lease as taken that was not",
      broken: events(answered("taken")),
      kept: events(answered("unreachable")),
    },
    {
      how: "a kind of fault explains nothing",
      broken: { ...events(answered("taken")), faults: fault("cut", 150, 250) },
      kept: { ...events(answered("taken")), faults: fault("flush-all", 150, 250) },
    },
  ],
  contradiction: [
    {
      how: "the server did not apply an accepted write",
      broken: events(held(300, write("a", "accepted"))),
      kept: {
        ...events(held(300, write("a", "accepted"))),
        applied: applied("redis-fenced", [["a", "origin", 1, 1n, 0n]]),
      },
    },
    {
      how: "the server applied a refused write",
      broken: {
        ...events(held(300, write("a", "refused"))),
        applied: applied("redis-fenced", [["a", "origin", 1, 1n, 0n]]),
      },
      kept: events(held(300, write("a", "refused"))),
    },
  ],
  "stale-write": [
    {
      how: "a register applied a smaller fence than it had seen",
      broken: { applied: applied("redis-fenced", [["a", "origin", 1, 4n, 5n]]) },
      kept: { applied: applied("redis-fenced", [["a", "origin", 1, 5n, 5n]]) },
    },
  ],
  "lost-update": [
    {
      how: "a write behind a fence overwrote another unseen",
      broken: {
        applied: applied("redis-fenced", [
          ["a", "origin", 1, 1n, 0n],
          ["b", "origin", 1, 2n, 1n],
        ]),
      },
      kept: {
        applied: applied("redis-fenced", [
          ["a", "origin", 1, 1n, 0n],
          ["b", "a", 2, 2n, 1n],
        ]),
      },
    },
  ],
  "unhandled-rejection": [
    {
      how: "a process records one",
      broken: events(held(300, { t: 150, who: "c1.0", what: "rejection", message: "no" })),
      kept: events(held(300)),
    },
  ],
  "overdue-call": [
    {
      how: "a process records one",
      broken: events(held(300, { ...about, t: 150, what: "overdue", call: "extend", awakeMs: 9 })),
      kept: events(held(300)),
    },
  ],
  "hung-process": [
    {
      how: "a process records it",
      broken: events(held(300, { t: 150, who: "c1.0", what: "hung" })),
      kept: events(held(300)),
    },
  ],
  "misbehaved-process": [
    { how: "a process died", broken: { misbehaved: ["c1.0 died"] }, kept: { misbehaved: [] } },
  ],
  "no-grant-after-healing": [
    { how: "the last grant was before", broken: after(4_999), kept: after(5_001) },
  ],
};

const brokenIn = (history: Partial<History>): readonly string[] =>
  findingsOf(planted(history)).broken.map(({ rule }) => rule);

test("every rule has a planted violation", () => {
  expect(Object.keys(pairs).toSorted()).toEqual([...faultRules].toSorted());
});

describe.each(faultRules)("%s", (rule) => {
  test.each(pairs[rule])("is reported if $how", ({ broken }) => {
    expect(brokenIn(broken)).toContain(rule);
  });

  test.each(pairs[rule])("is not reported if it is only just kept: $how", ({ kept }) => {
    expect(brokenIn(kept)).toEqual([]);
  });
});
