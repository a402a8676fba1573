import { describe, expect, test } from "vitest";
import { findingsOf } from "../../faults/check/summary.ts";
import type { ClientEvent } from "../../faults/history.ts";
import { applied, fault, planted, tenure } from "./histories.ts";

const failuresOf = (events: readonly ClientEvent[], faults = planted().faults): readonly string[] =>
  findingsOf(planted({ events: [...events, ...tenure("c9.0", 99, 6_000, 6_100)], faults }))
    .failures;

test("a history without mistakes has no failures", () => {
  expect(findingsOf(planted()).failures).toEqual([]);
});

describe("trusted leases that overlap", () => {
  const both = [...tenure("c1.0", 1, 100, 900), ...tenure("c2.0", 2, 500, 1_000)];

  test("are a failure", () => {
    const failures = failuresOf(both);
    expect(failures).toContain("r: c1.0/1 and c2.0/2 were both trusted for 400.0 ms");
    expect(failures.join()).toContain("mutex-model");
  });

  test("are a failure even after a node lost its data", () => {
    expect(failuresOf(both, fault("kill-empty", 200, 300))).not.toEqual([]);
  });

  test.each(["clock-step", "evict"])("are no failure after %s, until a TTL later", (kind) => {
    expect(failuresOf(both, fault(kind, 200, 300, "+3000 ms"))).toEqual([]);
    const later = [...tenure("c1.0", 1, 2_000, 2_900), ...tenure("c2.0", 2, 2_500, 3_000)];
    expect(failuresOf(later, fault(kind, 200, 300, "+3000 ms"))).not.toEqual([]);
  });

  test("count until the end that the library reported, even if the process was stopped", () => {
    const silent = tenure("c1.0", 1, 100, 9_000).filter(({ t }) => t <= 100);
    expect(failuresOf([...silent, ...tenure("c2.0", 2, 900, 950)])).toContain(
      "r: c1.0/1 and c2.0/2 were both trusted for 50.0 ms",
    );
    expect(failuresOf([...silent, ...tenure("c2.0", 2, 1_101, 1_150)])).toEqual([]);
  });

  test("end when the process was killed", () => {
    const silent = tenure("c1.0", 1, 100, 9_000).filter(({ t }) => t <= 100);
    const events = [...silent, ...tenure("c2.0", 2, 500, 600)];
    expect(failuresOf(events, fault("kill-client", 400, 450))).toEqual([]);
  });

  test("count until the last look if the library reports no end", () => {
    const endless = tenure("c1.0", 1, 100, 3_000).map((event) => {
      return JSON.parse(JSON.stringify({ ...event, untilMs: undefined })) as ClientEvent;
    });
    expect(failuresOf([...endless, ...tenure("c2.0", 2, 2_500, 2_600)])).not.toEqual([]);
  });
});

describe("fences", () => {
  test("that decrease are a failure", () => {
    const events = [...tenure("c1.0", 7, 100, 200), ...tenure("c2.0", 6, 300, 400)];
    expect(failuresOf(events).join()).toContain("fence-order");
  });

  test("that come twice are a failure", () => {
    const events = [...tenure("c1.0", 7, 100, 200), ...tenure("c2.0", 7, 300, 400)];
    expect(failuresOf(events).join()).toContain("fence-unique");
  });
});

describe("registers", () => {
  test("count updates that were overwritten unseen", () => {
    const writes = applied("redis", [
      ["a", "origin", 1],
      ["b", "a", 2],
      ["c", "a", 2],
    ]);
    const { updates, failures } = findingsOf(planted({ applied: writes }));
    expect(updates.find(({ register }) => register === "redis")).toMatchObject({
      applied: 3,
      lost: 1,
      blindLate: 1,
    });
    // Expected without a fence.
    expect(failures).toEqual([]);
  });

  test("behind a fence lose no update", () => {
    const writes = applied("redis-fenced", [
      ["a", "origin", 1, 1n, 0n],
      ["b", "origin", 1, 2n, 1n],
    ]);
    const { failures } = findingsOf(planted({ applied: writes }));
    expect(failures).toEqual(["redis-fenced: 1 updates lost"]);
  });

  test("behind a fence accept no stale write", () => {
    const writes = applied("postgres-fenced", [
      ["a", "origin", 1, 5n, 0n],
      ["b", "a", 2, 4n, 5n],
    ]);
    const { failures } = findingsOf(planted({ applied: writes }));
    expect(failures).toEqual(["postgres-fenced: 1 stale writes accepted"]);
  });

  test("must contain accepted writes, and no refused ones", () => {
    const about = { who: "c1.0", lease: "c1.0/1", resource: "r", careful: true } as const;
    const write = { ...about, what: "write", register: "redis-fenced" } as const;
    const events: ClientEvent[] = [
      ...planted().events,
      { ...write, t: 200, op: "a", phase: "accepted" },
      { ...write, t: 201, op: "b", phase: "refused" },
    ];
    const writes = applied("redis-fenced", [["b", "origin", 1, 1n, 0n]]);
    const { failures } = findingsOf(planted({ events, applied: writes }));
    expect(failures).toHaveLength(2);
  });
});

test("a resource that no client gets after all faults have healed is a failure", () => {
  const { failures } = findingsOf(planted({ events: tenure("c1.0", 1, 100, 200) }));
  expect(failures).toEqual(["r: no client got it after all faults had healed"]);
});

test("unhandled rejections, calls that hang and processes that die are failures", () => {
  const about = { t: 1, who: "c1.0" };
  const events: ClientEvent[] = [
    ...planted().events,
    { ...about, what: "rejection", message: "no" },
    { ...about, what: "hung" },
    { ...about, what: "overdue", lease: "x", resource: "r", call: "acquire", awakeMs: 9_000 },
  ];
  expect(findingsOf(planted({ events, misbehaved: ["died"] })).failures).toHaveLength(4);
});

test("the summary shows how early or late holders learnt of a loss, running and stopped separately", () => {
  const lost = (who: string, t: number): ClientEvent => {
    return {
      t,
      who,
      lease: `${who}/1`,
      resource: "r",
      what: "reported",
      reason: "expired",
      untilMs: 400,
    };
  };
  const events = [...planted().events, lost("c1.0", 700), lost("c2.0", 399)];
  const { summary } = findingsOf(planted({ events, faults: fault("freeze-client", 300, 690) }));
  expect(summary.learnedRunning).toMatchObject({ count: 1, latestMs: -1 });
  expect(summary.learnedFrozen).toMatchObject({ count: 1, latestMs: 300 });
});
