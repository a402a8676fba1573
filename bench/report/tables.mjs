// @ts-check
/** One table per measured case. */

import { titleOf } from "../contenders/list.mjs";
import { againstBestPeer } from "./bars.mjs";
import { spreadOf } from "./statistics.mjs";

/**
 * @import { Lookup, Place } from "./lookup.mjs"
 * @typedef {{ title: string, metric: string, digits: number, factor?: number, ratio?: boolean,
 *   worst?: boolean }} Column
 * @typedef {{ heading: string, more: boolean, metric: string, columns: readonly Column[] }} Layout
 */

/** @type {Layout} */
const sequential = {
  heading: "Sequential",
  more: true,
  metric: "perSecond",
  columns: [
    { title: "cycles/s", metric: "perSecond", digits: 0, ratio: true },
    { title: "client CPU, µs per cycle", metric: "cpuUs", digits: 1, ratio: true },
    { title: "p50, ms", metric: "p50Ms", digits: 2 },
    { title: "p99, ms", metric: "p99Ms", digits: 2 },
  ],
};

/** @type {Readonly<Record<string, Layout>>} */
export const layouts = {
  sequential,
  inflight: { ...sequential, heading: "In flight" },
  contended: {
    heading: "Contended",
    more: true,
    metric: "perSecond",
    columns: [
      { title: "sections/s", metric: "perSecond", digits: 0, ratio: true },
      { title: "of these to another task", metric: "passedOnPerSecond", digits: 0 },
      { title: "hand-over p50, ms", metric: "handOverP50Ms", digits: 2 },
      { title: "p99, ms", metric: "handOverP99Ms", digits: 2 },
      { title: "commands per section", metric: "commands", digits: 1 },
      { title: "longest wait, ms", metric: "longestWaitMs", digits: 0, worst: true },
      { title: "starved", metric: "starved", digits: 0, worst: true },
      { title: "taken again, %", metric: "regrabShare", digits: 0, factor: 100 },
      { title: "overlaps", metric: "overlaps", digits: 0, worst: true },
      { title: "client CPU, µs per section", metric: "cpuUs", digits: 0 },
    ],
  },
  killed: {
    heading: "A process is killed",
    more: false,
    metric: "costMs",
    columns: [{ title: "next grant after, ms", metric: "costMs", digits: 0, worst: true }],
  },
  sick: {
    heading: "A sick node of five",
    more: false,
    metric: "p99Ms",
    columns: [
      { title: "cycles/s", metric: "perSecond", digits: 0 },
      { title: "p50, ms", metric: "p50Ms", digits: 2 },
      { title: "p99, ms", metric: "p99Ms", digits: 2 },
    ],
  },
  renew: {
    heading: "Renewals",
    more: false,
    metric: "cpuUs",
    columns: [
      { title: "client CPU, µs per renewal", metric: "cpuUs", digits: 1, ratio: true },
      { title: "lost", metric: "lost", digits: 0, worst: true },
    ],
  },
  held: {
    heading: "Held leases",
    more: false,
    metric: "heapBytes",
    columns: [
      { title: "heap each, renewing, B", metric: "heapBytes", digits: 0 },
      { title: "heap each, not renewing, B", metric: "heapPlainBytes", digits: 0 },
      { title: "acquired/s", metric: "perSecond", digits: 0 },
    ],
  },
  growth: {
    heading: "Growth",
    more: true,
    metric: "",
    columns: [
      { title: "cycles/s", metric: "cyclesPerSecond", digits: 0 },
      { title: "client CPU, µs per cycle", metric: "cycleCpuUs", digits: 1 },
      { title: "µs per renewal", metric: "renewalCpuUs", digits: 1 },
      { title: "heap per new lease, B", metric: "heapBytes", digits: 0 },
      { title: "sections/s", metric: "perSecond", digits: 0 },
      { title: "commands per section", metric: "commands", digits: 1 },
      { title: "longest wait, ms", metric: "longestWaitMs", digits: 0 },
      { title: "starved", metric: "starved", digits: 0 },
    ],
  },
  waiting: {
    heading: "Waiting",
    more: false,
    metric: "serverCpuPercent",
    columns: [
      { title: "server CPU, % of a core", metric: "serverCpuPercent", digits: 2 },
      { title: "asks/s", metric: "asksPerSecond", digits: 0 },
      { title: "server CPU, µs per ask", metric: "askCpuUs", digits: 1 },
      { title: "a lock beside, p99, ms", metric: "otherP99Ms", digits: 2 },
      { title: "turns/s", metric: "turnsPerSecond", digits: 0 },
      { title: "hand-over p50, ms", metric: "handOverP50Ms", digits: 2 },
      { title: "p99, ms", metric: "handOverP99Ms", digits: 2 },
      { title: "failed", metric: "failed", digits: 0, worst: true },
    ],
  },
  import: {
    heading: "Cold import",
    more: false,
    metric: "importMs",
    columns: [{ title: "a fresh process loads it in, ms", metric: "importMs", digits: 1 }],
  },
};

/** @param {readonly string[]} head @param {readonly (readonly string[])[]} rows */
export function markdownTable(head, rows) {
  const line = (/** @type {readonly string[]} */ cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => (at === 0 ? "---" : "--:"))), ...rows.map(line)];
}

/** @param {Place} place */
export function titleOfPlace({ workload, label, nodes }) {
  const name = workload === "inflight" ? `${label} in flight` : label;
  return workload === "sequential" ? `N = ${nodes}` : `N = ${nodes}: ${name}`;
}

/**
 * Returns a title. If a case has waits, the floor polls. @param {Place} place @param {string} id
 */
export function titleHere({ workload, label }, id) {
  const isWaiting = workload === "contended" || workload === "killed" || label.endsWith(" waiters");
  return id === "floor" && isWaiting ? "raw polling, ioredis" : titleOf(id);
}

/** @param {Lookup} lookup @param {Place} place */
export function tableOf(lookup, place) {
  const layout = layouts[place.workload];
  if (layout === undefined) return [];
  const here = lookup.contenders(place);
  const columns = layout.columns.filter(({ metric }) =>
    here.some(({ values }) => values[metric] !== undefined),
  );
  const base = place.workload === "contended" ? "× raw polling" : "× F";
  const head = [
    "",
    ...columns.flatMap(({ title, ratio }) => (ratio === true ? [title, base] : [title])),
  ];
  const rows = here.map(({ contender, problems }) => {
    const mark = Object.keys(problems).length > 0 ? " (!)" : "";
    return [
      titleHere(place, contender) + mark,
      ...columns.flatMap((column) => cells(lookup, place, contender, column)),
    ];
  });
  return markdownTable(head, rows);
}

/** @param {Lookup} lookup @param {Place} place @param {string} contender @param {Column} column */
function cells(lookup, place, contender, { metric, digits, factor = 1, ratio, worst }) {
  const value =
    worst === true
      ? lookup.greatest(place, contender, metric)
      : lookup.median(place, contender, metric);
  const text = value === undefined ? "–" : (value * factor).toFixed(digits);
  if (ratio !== true) return [text];
  const range = spreadOf(lookup.find(place, contender)?.values[metric] ?? []);
  const spread =
    range === undefined ? "" : ` (${range.least.toFixed(digits)}–${range.most.toFixed(digits)})`;
  const against = lookup.ratio(place, contender, metric);
  return [text + spread, against === undefined ? "–" : against.toFixed(2)];
}

/** Returns a table that compares Holdfast with the best peer of each row. @param {Lookup} lookup */
export function peersTable(lookup) {
  const rows = Object.entries(layouts).flatMap(([workload, { metric, more, heading }]) =>
    lookup.places(workload).flatMap((place) => {
      const cell = (/** @type {string} */ id) => {
        const best = againstBestPeer(lookup, place, id, metric, more);
        if (best === undefined) return undefined;
        const ahead = more ? best.ratio > 1 : best.ratio < 1;
        return { peer: best.peer, text: `${best.ratio.toFixed(2)} ${ahead ? "ahead" : "behind"}` };
      };
      const [unfenced, fenced] = [cell("unfenced"), cell("fenced")];
      const peer = unfenced?.peer ?? fenced?.peer;
      if (peer === undefined) return [];
      const name = `${heading}, ${titleOfPlace(place)}`;
      return [[name, titleOf(peer), unfenced?.text ?? "–", fenced?.text ?? "–"]];
    }),
  );
  return rows.length === 0
    ? []
    : markdownTable(["row", "best peer", "unfenced against it", "fenced against it"], rows);
}
