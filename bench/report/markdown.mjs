// @ts-check
/** The results as a page. */

import { titleOf } from "../contenders/list.mjs";
import { verdictsOf } from "./bars.mjs";
import { Lookup } from "./lookup.mjs";
import { nameOf, plotsOf } from "./plots.mjs";
import { layouts, markdownTable, peersTable, tableOf, titleOfPlace } from "./tables.mjs";

/** @import { Results, Run } from "../types.ts" */

/** @param {Results} results */
export function pageOf(results) {
  const lookup = new Lookup(results.series);
  return `${[
    "# Benchmark",
    "",
    "Written by `npm run bench`. F is the floor: a hand-written `SET NX PX` and compare-and-delete",
    "on ioredis 5, on several nodes with a majority. The limit is the same on a socket of its own",
    "with one write per turn of the event loop. Every contender has a process of its own (four in",
    "the rows that say so); in every round all of them take turns in random order. `× F` is the",
    "median of the ratios within one round, other figures are medians of the rounds with the least",
    "and the greatest behind them, except for longest waits, starved tasks, losses and overlaps,",
    "which are those of the worst round.",
    "",
    ...results.runs.flatMap((run) => [...runLines(run), ""]),
    "## Bars",
    "",
    ...barLines(lookup),
    "",
    "## Against the best peer",
    "",
    "The peers have no fences, so the unfenced column is the like for like. The number is ours",
    "divided by the peer's; in rows of time, CPU or heap, less than 1 is ahead.",
    "",
    ...peersTable(lookup),
    ...workloadLines(lookup),
    "",
    "## Settings",
    "",
    "Holdfast has its defaults for everything but TTL and wait. No library has a limit on the time of a",
    "command beyond what the library sets. Peers in the contended rows pause between attempts as",
    "raw polling does; `defaults` means the pauses that the library has of its own accord. The",
    "pause is the one of 1, 2, 5, 10 and 20 ms with which raw polling passes the resource on to",
    "another task most often. Commands are those that clients send, over all nodes; what a script",
    "does inside the server is not counted.",
    "",
    ...results.runs.flatMap(({ notes }) => notes.map((note) => `- ${note}`)),
    "",
    "## What went wrong",
    "",
    ...problemLines(results),
  ].join("\n")}\n`;
}

/** @param {Run} run */
function runLines({ machine, options, seconds, versions }) {
  const { cpu, cores, memoryGb, system, node, redis, date, commit, loadBefore } = machine;
  const load = loadBefore.map((value) => value.toFixed(2)).join(", ");
  const libraries = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `${options.names.join(", ")}:`,
    "",
    `- ${date}, commit ${commit}`,
    `- ${cores} × ${cpu}, ${memoryGb} GB, ${system}; load before: ${load}`,
    `- Node.js ${node}, Redis ${redis}, all on this machine over loopback, without persistence`,
    `- ${libraries.join(", ")}`,
    `- ${options.rounds} rounds, ${Math.round(seconds / 60)} minutes${options.quick ? ", QUICK" : ""}` +
      (options.scale === 1 ? "" : `, every time × ${options.scale}`),
  ];
}

/** @param {Lookup} lookup */
export function barLines(lookup) {
  const word = (/** @type {boolean | undefined} */ met) =>
    met === undefined ? "–" : met ? "met" : "**missed**";
  return markdownTable(
    ["what", "bar", "ours", ""],
    verdictsOf(lookup).map(({ what, bar, ours, met }) => [what, bar, ours, word(met)]),
  );
}

/** @param {Lookup} lookup */
function workloadLines(lookup) {
  return Object.entries(layouts).flatMap(([workload, { heading }]) => {
    const places = lookup.places(workload);
    if (places.length === 0) return [];
    return [
      "",
      `## ${heading}`,
      ...places.flatMap((place) => [
        "",
        `### ${heading}, ${titleOfPlace(place)}`,
        "",
        ...tableOf(lookup, place),
        ...(workload === "growth" ? [] : ["", `![plot](plots/${nameOf(place)})`]),
      ]),
      ...(workload === "growth" ? growthPlots(lookup) : []),
    ];
  });
}

/** @param {Lookup} lookup */
function growthPlots(lookup) {
  const names = [...plotsOf(lookup).keys()].filter((name) => name.startsWith("growth-"));
  return names.flatMap((name) => ["", `![plot](plots/${name})`]);
}

/** @param {Results} results */
function problemLines({ series }) {
  const rows = series.flatMap(({ workload, label, nodes, contender, problems }) =>
    Object.entries(problems).map(([kind, count]) => [
      `${workload}, N = ${nodes}, ${label}`,
      titleOf(contender),
      kind.replaceAll("|", "\\|"),
      String(count),
    ]),
  );
  if (rows.length === 0) return ["Nothing."];
  return markdownTable(["where", "who", "what", "times"], rows);
}
