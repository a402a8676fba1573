import { expect, test } from "vitest";
import { waitsOf } from "../../faults/check/waits.ts";
import type { ClientEvent, FaultEvent } from "../../faults/history.ts";
import { fault, planted, tenure } from "./histories.ts";

/** Client 1 waits from 90 to 3,000 ms and gives up, while `others` other calls are granted. */
function waited(others: number, who = "c2.0"): ClientEvent[] {
  const about = { who: "c1.0", lease: "c1.0/1", resource: "r" };
  const events: ClientEvent[] = [
    { ...about, t: 90, what: "call" },
    { ...about, t: 3_000, what: "refused", why: "ACQUIRE_TIMEOUT" },
  ];
  for (let n = 2; n < others + 2; n += 1) events.push(...tenure(who, n, n * 110, n * 110 + 50));
  return events.toSorted((a, b) => a.t - b.t);
}

function starved(events: readonly ClientEvent[], faults: readonly FaultEvent[] = []): number[] {
  return waitsOf(planted({ events, faults })).map((waits) => waits.starved);
}

test("each client's calls, grants and waiting times are counted, with its clock offset", () => {
  const waits = waitsOf(planted({ events: waited(3), clockOffsetsMs: [15_000, 0, 0] }));
  expect(waits[0]).toMatchObject({ clockOffsetMs: 15_000, calls: 1, granted: 0, starved: 0 });
  expect(waits[1]).toMatchObject({ calls: 3, granted: 3, medianWaitMs: 10, longestWaitMs: 10 });
  expect(waits[2]).toMatchObject({ client: 2, calls: 0, granted: 0, longestWaitMs: 0 });
});

test("a call starves if four later calls of others are granted before it gives up", () => {
  expect(starved(waited(3))).toEqual([0, 0]);
  expect(starved(waited(4))).toEqual([1, 0]);
});

test("a call that is granted in the end was overtaken, and did not starve", () => {
  const events = waited(4).map((event) => {
    return event.what === "refused" ? { ...event, what: "granted" as const } : event;
  });
  const [first] = waitsOf(planted({ events }));
  expect(first).toMatchObject({ granted: 1, overtaken: 1, starved: 0 });
});

test("a call does not starve behind calls of its own client, or behind earlier ones", () => {
  expect(starved(waited(4, "c1.0"))).toEqual([0]);
  const earlier = waited(4).map((event) => {
    return event.what === "call" && event.who === "c2.0" ? { ...event, t: 50 } : event;
  });
  expect(starved(earlier.toSorted((a, b) => a.t - b.t))).toEqual([0, 0]);
});

test("a call does not starve while its client has a fault", () => {
  expect(starved(waited(4), fault("cut", 1_000, 1_100))).toEqual([0, 0]);
  expect(starved(waited(4), fault("cut", 4_000, 4_100))).toEqual([1, 0]);
  const ofNode = fault("busy", 1_000, 1_100).map((event) => ({ ...event, clients: [] }));
  expect(starved(waited(4), ofNode)).toEqual([1, 0]);
});
