import { expect, test } from "vitest";
import { Lookup } from "../../bench/report/lookup.mjs";
import { verdictsOf } from "../../bench/report/bars.mjs";
import type { ContendResult, Results, Run, Section, Series } from "../../bench/types.ts";
import { merged } from "../../bench/report/merge.mjs";
import { roundsOff } from "../../bench/report/statistics.mjs";
import { judgeSections } from "../../bench/workloads/sections.mjs";

const quiet = { failures: {}, commands: 12, cpuUs: 300, overlapsCounted: 0, unfinished: 0 };
const window = { startAtMs: 0, durationMs: 100, tasks: 3 };

function seen(...lists: readonly (readonly Section[])[]): ContendResult[] {
  return lists.map((sections) => ({ ...quiet, sections }));
}

test("sections of two processes are ordered by the moment of their grants", () => {
  const { overlaps, values } = judgeSections(
    seen(
      [
        [0, 0, 1, 10, 11],
        [0, 11, 31, 40, 41],
      ],
      [
        [1, 0, 12, 20, 21],
        [1, 21, 24, 30, 31],
      ],
    ),
    window,
  );
  expect(overlaps).toBe(0);
  expect(values).toMatchObject({
    perSecond: 40,
    handOverP50Ms: 2,
    commands: 6,
    cpuUs: 150,
    // The third task never got the lock, so it waited for the whole window.
    longestWaitMs: 100,
    starved: 1,
    overlaps: 0,
  });
  expect(values.regrabShare).toBeCloseTo(1 / 3);
});

test("a grant before the other began to release is an overlap", () => {
  const sections: Section[] = [
    [0, 0, 1, 10, 11],
    [1, 0, 9.5, 20, 21],
  ];
  expect(judgeSections(seen(sections), window).overlaps).toBe(1);
  const counted = [{ ...quiet, sections: [], overlapsCounted: 2 }];
  expect(judgeSections(counted, window).overlaps).toBe(2);
});

test("a grant after the end of the window is not counted", () => {
  const { values } = judgeSections(seen([[0, 90, 120, 121, 122]]), { ...window, tasks: 1 });
  expect(values).toMatchObject({ perSecond: 0, starved: 1, longestWaitMs: 100 });
});

function series(contender: string, perSecond: (number | undefined)[]): Series {
  const place = { workload: "inflight", label: "64", nodes: 1 };
  return { ...place, contender, values: { perSecond }, problems: {} };
}

test("a bar is judged by the median of the ratios within a round", () => {
  // In the second round the machine was busy for both; in the fourth the floor has no result.
  const own = series("unfenced", [2_400, 600, 2_500, 9_000]);
  const floor = series("floor", [1_000, 250, 1_000, undefined]);
  const verdicts = verdictsOf(new Lookup([own, floor]));
  const verdict = verdicts.find(({ what }) => what === "64 in flight, N = 1, unfenced");
  expect(verdict).toEqual({
    what: "64 in flight, N = 1, unfenced",
    bar: "≥ 2.3 F",
    ours: "2.40 F",
    met: true,
  });
  const others = verdicts.filter((each) => each !== verdict);
  expect(others.every(({ met }) => met === undefined)).toBe(true);
});

test("many waiters are compared with few waiters, and with as many that poll", () => {
  const waiting = (contender: string, count: number, values: Series["values"]): Series => {
    return {
      workload: "waiting",
      label: `${count} waiters`,
      nodes: 1,
      contender,
      values,
      problems: {},
    };
  };
  const verdicts = verdictsOf(
    new Lookup([
      waiting("fenced", 0, { otherP99Ms: [1] }),
      waiting("fenced", 10, { askCpuUs: [30, 40], handOverP99Ms: [2], failed: [0, 0] }),
      waiting("fenced", 1_000, {
        askCpuUs: [42, 42],
        serverCpuPercent: [1, 3],
        otherP99Ms: [3],
        handOverP99Ms: [4],
        failed: [0, 1],
      }),
      waiting("floor", 1_000, { serverCpuPercent: [2, 4] }),
    ]),
  );
  const known = verdicts.filter(({ met }) => met !== undefined);
  expect(known.map(({ bar, ours, met }) => ({ bar, ours, met }))).toEqual([
    { bar: "≤ 2 × with 10", ours: "1.20 × with 10", met: true },
    { bar: "< 1 × as many that poll", ours: "0.63 × as many that poll", met: true },
    { bar: "≤ 0", ours: "1.00", met: false },
    { bar: "≤ 2 × without them", ours: "3.00 × without them", met: false },
    { bar: "≤ 3 × with 10", ours: "2.00 × with 10", met: true },
  ]);
});

test("rounds in which the floor is far from its median are measured again", () => {
  expect(roundsOff([1_000, 1_050, 700, 990, 1_400], 5)).toEqual([2, 4]);
  expect(roundsOff([1_000, undefined, 1_100], 4)).toEqual([1, 3]);
  expect(roundsOff([1_000, 800, 1_200], 3)).toEqual([]);
  // Without any figure there is nothing to compare.
  expect(roundsOff([], 3)).toEqual([]);
});

test("results of some workloads replace theirs among those that are kept, and nothing else", () => {
  const at = (workload: string, contender: string): Series => ({
    workload,
    contender,
    label: "1",
    nodes: 1,
    values: {},
    problems: {},
  });
  const run = (commit: string, names: string[], notes: string[]): Run =>
    ({ machine: { commit }, options: { names }, notes }) as unknown as Run;
  const kept: Results = {
    runs: [
      run("old", ["held", "renew"], ["held: of old", "renew: of old", "of both"]),
      run("older", ["import"], ["import: of older"]),
    ],
    series: [at("held", "old"), at("renew", "old"), at("import", "older")],
  };
  const measured: Results = {
    runs: [run("new", ["import", "held"], ["held: of new"])],
    series: [at("held", "new"), at("import", "new")],
  };
  const { runs, series: left } = merged(kept, measured);
  expect(left.map(({ workload, contender }) => `${workload} ${contender}`)).toEqual([
    "renew old",
    "held new",
    "import new",
  ]);
  expect(runs.map(({ machine, options, notes }) => [machine.commit, options.names, notes])).toEqual(
    [
      ["old", ["renew"], ["renew: of old", "of both"]],
      ["new", ["import", "held"], ["held: of new"]],
    ],
  );
});
