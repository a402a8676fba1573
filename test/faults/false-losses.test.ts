import { describe, expect, test } from "vitest";
import { findingsOf } from "../../faults/check/summary.ts";
import type { ClientEvent, FaultEvent } from "../../faults/history.ts";
import { fault, planted, tenure } from "./histories.ts";

const about = { who: "c1.0", lease: "c1.0/1", resource: "r" };

/** Events of a lease held from 100 to 300 ms of its 1,000 ms, then released with this outcome. */
function givenBack(by: "using" | "release", outcome: string, settledMs = 305): ClientEvent[] {
  const events = tenure("c1.0", 1, 100, 300).filter(({ what }) => what !== "released");
  return [...events, { ...about, t: settledMs, what: "released", outcome, by }];
}

/**
 * Events of a lease held from 100 ms on, valid for 1,000 ms, and reported lost by its signal at
 * `t`.
 */
function signalled(reason: string, t: number): ClientEvent[] {
  const held = tenure("c1.0", 1, 100, t).filter(
    ({ what }) => what === "call" || what === "granted",
  );
  return [...held, { ...about, t, what: "reported", reason, untilMs: 1_100 }];
}

/** Returns the findings about the events. Another client gets the resource afterwards. */
function judge(
  events: readonly ClientEvent[],
  faults: readonly FaultEvent[] = [],
): { readonly failures: readonly string[]; readonly explained: Readonly<Record<string, number>> } {
  const after = tenure("c9.0", 99, 6_000, 6_100);
  const { failures, summary } = findingsOf(planted({ events: [...events, ...after], faults }));
  const count = Object.values(summary.falseLosses).reduce((sum, n) => sum + n, 0);
  expect(failures.filter((text) => text.includes("falsely"))).toHaveLength(count);
  return { failures, explained: summary.earlyLossesExplained };
}

describe("a loss is false", () => {
  test.each(["using", "release"] as const)("if %s reports a lease as taken that was not", (by) => {
    expect(judge(givenBack(by, "taken")).failures).toEqual([
      `r: c1.0/1 was falsely reported lost (${by}: taken), 800 ms left`,
    ]);
  });

  test("if a release was called in time, and its reply came after the end", () => {
    expect(judge(givenBack("release", "taken", 4_000)).failures).toHaveLength(1);
  });

  test.each(["taken", "expired", "unreachable", "clock"])(
    "if the signal reports %s before the end",
    (reason) => {
      expect(judge(signalled(reason, 500)).failures).toEqual([
        `r: c1.0/1 was falsely reported lost (signal: ${reason}), 600 ms left`,
      ]);
    },
  );

  test.each(["extend", "prove"] as const)("if %s reports it", (what) => {
    const events = tenure("c1.0", 1, 100, 300).filter(({ t }) => t < 300);
    const report = { ...about, t: 400, what, outcome: "taken" };
    expect(judge([...events, report]).failures).toHaveLength(1);
  });

  test("and counted once, even if it is reported twice", () => {
    const events = signalled("taken", 500);
    const again = { ...about, t: 510, what: "released", outcome: "taken", by: "using" } as const;
    expect(judge([...events, again]).failures).toHaveLength(1);
  });

  test("before the latest end that the library reported", () => {
    const look = { ...about, t: 900, what: "look", trusted: true, untilMs: 1_900 } as const;
    expect(judge(signalled("expired", 1_095)).failures).toEqual([]);
    const renewed = [...signalled("expired", 1_095), look].toSorted((a, b) => a.t - b.t);
    expect(judge(renewed).failures).toHaveLength(1);
  });

  test.each([
    "kill-keep",
    "freeze-node",
    "freeze-client",
    "cut",
    "lose-replies",
    "kill-connections",
    "kill-subscribers",
    "busy",
    "misconf",
    "out-of-memory",
    "script-flush",
  ])("if %s is the only fault meanwhile", (kind) => {
    const { failures } = judge(givenBack("using", "taken"), fault(kind, 150, 250));
    expect(failures).toHaveLength(1);
  });

  test("if a node lost its keys before the lease began, or after it was released", () => {
    for (const faults of [fault("flush-all", -200, -200), fault("kill-empty", 700, 800)]) {
      expect(judge(givenBack("using", "taken"), faults).failures).toHaveLength(1);
    }
  });

  test("if another client's clock was stepped, or its own clock was set back", () => {
    const other = fault("client-clock-step", 200, 3_000, "+3000 ms").map((event) => {
      return { ...event, clients: [1] };
    });
    expect(judge(signalled("clock", 500), other).failures).toHaveLength(1);
    const back = fault("client-clock-step", 200, 3_000, "-3000 ms");
    expect(judge(signalled("clock", 500), back).failures).toHaveLength(1);
  });

  test("if other clients had the resource only after the release", () => {
    const events = [...givenBack("using", "taken"), ...tenure("c2.0", 2, 302, 304)];
    const { failures } = judge(events.toSorted((a, b) => a.t - b.t));
    expect(failures).toHaveLength(1);
  });
});

describe("a loss is true", () => {
  test("from just before the end of the validity on", () => {
    for (const t of [1_085, 1_100, 4_000]) {
      expect(judge(signalled("expired", t)).failures).toEqual([]);
    }
  });

  test.each(["flush-all", "evict", "kill-empty"])("if %s made a node forget the lease", (kind) => {
    const { failures, explained } = judge(givenBack("using", "taken"), fault(kind, 200, 250));
    expect({ failures, explained }).toEqual({ failures: [], explained: { data: 1 } });
  });

  test("if a node evicted keys all the time", () => {
    expect(judge(givenBack("using", "taken"), fault("evict", -900, 900)).failures).toEqual([]);
  });

  test.each([
    ["ahead", 200, 3_000, "+3000 ms"],
    ["back to the time from behind", -900, 200, "-3000 ms"],
  ])("if a node's clock was set %s", (_where, fromMs, toMs, detail) => {
    const step = fault("clock-step", fromMs, toMs, detail);
    expect(judge(signalled("clock", 500), step).failures).toEqual([]);
    expect(judge(givenBack("release", "taken"), step).failures).toEqual([]);
  });

  test.each([
    ["ahead", 200, 3_000, "+3000 ms"],
    ["back to the time from behind", -900, 200, "-3000 ms"],
  ])("if the holder's own clock was set %s", (_where, fromMs, toMs, detail) => {
    const step = fault("client-clock-step", fromMs, toMs, detail);
    const { failures, explained } = judge(signalled("clock", 500), step);
    expect({ failures, explained }).toEqual({ failures: [], explained: { "client clock": 1 } });
  });

  test("if another client was granted the resource before, which is an overlap", () => {
    const events = [...givenBack("release", "taken"), ...tenure("c2.0", 2, 200, 250)];
    const { failures, explained } = judge(events.toSorted((a, b) => a.t - b.t));
    expect(explained).toEqual({ rival: 1 });
    expect(failures.join()).toContain("both trusted");
    expect(failures.join()).not.toContain("falsely");
  });
});

describe("no loss is counted", () => {
  test("if a release could not be confirmed", () => {
    expect(judge(givenBack("release", "unreachable")).failures).toEqual([]);
  });

  test("if the store could not be reached", () => {
    const events = tenure("c1.0", 1, 100, 300);
    const report = { ...about, t: 200, what: "extend", outcome: "QUORUM" } as const;
    expect(judge([...events, report].toSorted((a, b) => a.t - b.t)).failures).toEqual([]);
  });

  test("if a library reports a loss without a reason", () => {
    expect(judge(signalled("onLockLost", 500)).failures).toEqual([]);
  });
});
