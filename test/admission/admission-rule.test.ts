import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quarantineMs, resolveStoreOptions } from "../../src/stores/redis/options.ts";
import {
  blankForMs,
  greatestCounters,
  type NodeView,
  verdict,
} from "../../src/stores/redis/admission/admission-rule.ts";
import { type NodeRecord, nodeRecordCall } from "../../src/stores/redis/admission/node-record.ts";

const options = resolveStoreOptions({ maxTtl: "30s" }, 3);
const waitMs = quarantineMs(options, 30_000);
const serverMs = 1_000_000_000;

function record(changes: Partial<NodeRecord> = {}): NodeRecord {
  return {
    runId: "f",
    admitted: false,
    everAdmitted: false,
    mode: undefined,
    since: String(serverMs),
    serverMs,
    uptimeMs: 0,
    ttlMaxMs: 30_000,
    floor: 0,
    counters: new Map(),
    ...changes,
  };
}

const view = (changes?: Partial<NodeRecord>): NodeView => ({
  kind: "record",
  record: record(changes),
});
const blankFor = (ms: number, changes: Partial<NodeRecord> = {}): NodeView =>
  view({ since: String(serverMs - ms), ...changes });
const admitted = view({ admitted: true, everAdmitted: true });
const silent = (forMs: number): NodeView => ({ kind: "silent", forMs });

const judge = (views: readonly NodeView[], index = 0) =>
  verdict(options, views, index, Math.floor(views.length / 2) + 1);

test("a quarantine lasts the longest TTL plus the greatest clock error", () => {
  expect(waitMs).toBe(30_302);
});

describe("a node that lost its data", () => {
  test("waits for its whole quarantine, even if a quorum of the others is admitted", () => {
    expect(judge([blankFor(1_000), admitted, admitted])).toEqual({
      kind: "wait",
      leftMs: waitMs - 1_000,
    });
  });

  test("copies from a quorum of others when the quarantine is over", () => {
    expect(judge([blankFor(waitMs), admitted, admitted])).toEqual({
      kind: "admit",
      mode: "copy",
      quarantineMs: waitMs,
    });
  });

  test("is not part of the quorum that it copies from", () => {
    const views = [blankFor(waitMs), admitted, silent(0)];
    expect(judge(views)).toEqual({ kind: "wait", leftMs: waitMs });
  });

  test("waits as long as the longest TTL that any node has recorded", () => {
    const longer = quarantineMs(options, 60_000);
    const views = [
      blankFor(waitMs),
      admitted,
      view({ admitted: true, everAdmitted: true, ttlMaxMs: 60_000 }),
    ];
    expect(judge(views)).toEqual({ kind: "wait", leftMs: longer - waitMs });
  });

  test("is not judged while it does not answer", () => {
    expect(judge([silent(waitMs), admitted, admitted])).toEqual({ kind: "wait", leftMs: Infinity });
  });

  test("waits for the whole quarantine again if its clock was set back", () => {
    expect(blankForMs(record({ since: String(serverMs + 5_000) }))).toBe(0);
  });
});

describe("a first start", () => {
  const up = (ms: number) => view({ uptimeMs: ms });

  test("is admitted at once if every server has been up for the length of a quarantine", () => {
    const verdicts = [0, 1, 2].map((index) => judge([up(31_000), up(40_000), up(31_000)], index));
    const admit = { kind: "admit", mode: "bootstrap", quarantineMs: waitMs };
    expect(verdicts).toEqual([admit, admit, admit]);
  });

  test("waits for the youngest server, so that all servers are admitted in the same mode", () => {
    const views = [up(31_000), up(30_000), up(31_000)];
    const verdicts = [0, 1, 2].map((index) => judge(views, index));
    const wait = { kind: "wait", leftMs: waitMs - 30_000 };
    expect(verdicts).toEqual([wait, wait, wait]);
  });

  test("counts the time for which a server was seen blank as well as its uptime", () => {
    const views = [blankFor(waitMs), up(31_000), up(31_000)];
    expect(judge(views, 1)).toMatchObject({ kind: "admit", mode: "bootstrap" });
  });

  test("is not assumed while one node does not answer, because that node may have a record", () => {
    expect(judge([up(99_000), up(99_000), silent(0)])).toMatchObject({ kind: "wait" });
  });

  test("is not assumed if one of the nodes was admitted before", () => {
    const views = [up(99_000), up(99_000), view({ uptimeMs: 99_000, everAdmitted: true })];
    expect(judge(views)).toEqual({ kind: "wait", leftMs: waitMs });
  });
});

describe("if too few admitted nodes are left to copy from", () => {
  test("a node is admitted by clocks, once the shortage has lasted a quarantine", () => {
    const blank = blankFor(waitMs);
    expect(judge([blank, blank, admitted])).toMatchObject({ kind: "admit", mode: "clock" });
    expect(judge([blank, silent(waitMs), admitted])).toMatchObject({
      kind: "admit",
      mode: "clock",
    });
    expect(judge([blank, silent(waitMs - 1), admitted])).toEqual({ kind: "wait", leftMs: 1 });
  });

  test("of five nodes, a shortage begins when the third is missing", () => {
    const blank = blankFor(waitMs);
    const views = [blank, blankFor(90_000), blankFor(10_000), admitted, admitted];
    expect(judge(views)).toEqual({ kind: "wait", leftMs: waitMs - 10_000 });
    const enough = [blank, blankFor(90_000), admitted, admitted, admitted];
    expect(judge(enough)).toMatchObject({ kind: "admit", mode: "copy" });
  });
});

test("for any views, no node is admitted before its own quarantine, or by too few others", () => {
  const ms = fc.integer({ min: 0, max: 2 * waitMs });
  const anyView = fc.oneof(
    ms.map(silent),
    fc.record({ blank: ms, uptimeMs: ms, admitted: fc.boolean(), ever: fc.boolean() }).map((made) =>
      blankFor(made.blank, {
        uptimeMs: made.uptimeMs,
        admitted: made.admitted,
        everAdmitted: made.admitted || made.ever,
      }),
    ),
  );
  fc.assert(
    fc.property(fc.array(anyView, { minLength: 3, maxLength: 7 }), (views) => {
      const size = Math.floor(views.length / 2) + 1;
      const found = verdict(options, views, 0, size);
      if (found.kind === "wait") return;
      const records = views.flatMap((each) => (each.kind === "record" ? [each.record] : []));
      const own = records[0];
      const others = views
        .slice(1)
        .filter((each) => each.kind === "record" && each.record.admitted);
      expect(own).toBeDefined();
      if (own === undefined) return;
      if (found.mode === "bootstrap") {
        expect(records).toHaveLength(views.length);
        for (const each of records) {
          expect(each.everAdmitted).toBe(false);
          expect(Math.max(each.uptimeMs, blankForMs(each))).toBeGreaterThanOrEqual(waitMs);
        }
      } else {
        expect(blankForMs(own)).toBeGreaterThanOrEqual(waitMs);
        expect(others.length >= size).toBe(found.mode === "copy");
      }
    }),
  );
});

test("a node copies the greatest counter of every shard and the greatest floor", () => {
  const counters = (...pairs: readonly (readonly [number, number])[]) => new Map(pairs);
  expect(
    greatestCounters([
      record({ floor: 3, counters: counters([1, 10], [2, 5]) }),
      record({ floor: 7, counters: counters([1, 4], [9, 1]) }),
    ]),
  ).toEqual({ floor: 7, counters: counters([1, 10], [2, 5], [9, 1]) });
  expect(greatestCounters([])).toEqual({ floor: 0, counters: new Map() });
});

test("an uptime in whole seconds counts as one second less, because Redis may round it up", () => {
  const read = (uptime: number) =>
    nodeRecordCall(options).read(`W 100 0 ${uptime} rid f st Q since 1`, false).uptimeMs;
  // Started at 10.9 s and seen at 12.0 s: Redis reports 2.
  expect(read(2)).toBe(1_000);
  expect(read(0)).toBe(0);
});
