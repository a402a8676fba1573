import { describe, expect, test } from "vitest";
import {
  Assumptions,
  checkConfirmations,
  checkFences,
  checkMutex,
  fencedMutex,
  judge,
  ownerAwareMutex,
  type GrantRecord,
  type TenureRecord,
} from "../../src/simulator/index.ts";

function grant(client: string, startedMs: number, completedMs: number, fence: number): GrantRecord {
  return { client, resources: ["r"], startedMs, completedMs, fence: BigInt(fence) };
}

function tenure(client: string, acquiredMs: number, untilMs: number, fence: number): TenureRecord {
  return {
    client,
    resource: "r",
    fence: BigInt(fence),
    startedMs: acquiredMs - 1,
    acquiredMs,
    trustedUntilMs: untilMs,
  };
}

const rules = (found: readonly { rule: string }[]): string[] => found.map(({ rule }) => rule);

describe("fences", () => {
  const oneEpoch = (): number => 0;

  test("may come in any order while attempts overlap", () => {
    expect(checkFences([grant("a", 0, 10, 2), grant("b", 5, 9, 1)], oneEpoch)).toEqual([]);
  });

  test("must grow from an attempt that has ended to one that begins afterwards", () => {
    const found = checkFences([grant("a", 0, 10, 2), grant("b", 11, 12, 1)], oneEpoch);
    expect(rules(found)).toEqual(["fence-order"]);
  });

  test("must not be given twice, whether attempts overlap or not", () => {
    const found = checkFences([grant("a", 0, 10, 2), grant("b", 5, 12, 2)], oneEpoch);
    expect(rules(found)).toEqual(["fence-unique"]);
  });

  test("are compared within an epoch only", () => {
    const grants = [grant("a", 0, 10, 2), grant("b", 11, 12, 1)];
    expect(checkFences(grants, ({ startedMs }) => (startedMs > 10 ? 1 : 0))).toEqual([]);
    expect(checkFences(grants, () => undefined)).toEqual([]);
  });
});

test("a lease must not be confirmed after another client got a greater fence", () => {
  const grants = [grant("a", 0, 1, 1), grant("b", 2, 3, 2)];
  const confirmed = { client: "a", resources: ["r"], fence: 1n, grantedMs: 1 };
  const found = (startedMs: number): string[] =>
    rules(checkConfirmations([{ ...confirmed, startedMs }], grants, () => 0));
  expect(found(2.5)).toEqual([]);
  expect(found(4)).toEqual(["stale-confirmation"]);
});

describe("the mutex models", () => {
  test("allow one holder after the other", () => {
    const tenures = [tenure("a", 0, 5, 1), tenure("b", 5, 9, 2)];
    expect(checkMutex(ownerAwareMutex, tenures)).toEqual([]);
    expect(checkMutex(fencedMutex, tenures)).toEqual([]);
  });

  test("refuse two holders at a time", () => {
    const tenures = [tenure("a", 0, 5, 1), tenure("b", 4, 9, 2)];
    expect(rules(checkMutex(ownerAwareMutex, tenures))).toEqual(["mutex-model"]);
  });

  test("refuse a holder within the time of another", () => {
    const tenures = [tenure("a", 0, 9, 1), tenure("b", 4, 4, 2)];
    expect(rules(checkMutex(ownerAwareMutex, tenures))).toEqual(["mutex-model"]);
  });

  test("with fences, refuse a later holder with a smaller fence", () => {
    const tenures = [tenure("a", 0, 5, 2), tenure("b", 6, 9, 1)];
    expect(checkMutex(ownerAwareMutex, tenures)).toEqual([]);
    expect(rules(checkMutex(fencedMutex, tenures))).toEqual(["mutex-model"]);
  });
});

describe("a history", () => {
  const overlap = [tenure("a", 0, 5, 1), tenure("b", 4, 9, 2)];

  test("is checked while the assumptions hold", () => {
    expect(judge({ grants: [], tenures: overlap }, new Assumptions())).not.toEqual([]);
  });

  test("is excused while an assumption is broken, and only then", () => {
    const assumptions = new Assumptions();
    assumptions.breakExclusion(3, 6, "a key was evicted");
    expect(judge({ grants: [], tenures: overlap }, assumptions)).toEqual([]);
    const later = [tenure("a", 20, 25, 3), tenure("b", 24, 29, 4)];
    expect(judge({ grants: [], tenures: [...overlap, ...later] }, assumptions)).not.toEqual([]);
  });

  test("must keep fences in order when keys are lost, but not when counters are lost", () => {
    const assumptions = new Assumptions();
    assumptions.breakExclusion(0, 100, "a key was evicted");
    const grants = [grant("a", 0, 10, 2), grant("b", 21, 22, 1)];
    expect(rules(judge({ grants, tenures: [] }, assumptions))).toEqual(["fence-order"]);
    assumptions.breakFences(15, "every node lost its data");
    expect(judge({ grants, tenures: [] }, assumptions)).toEqual([]);
  });
});
