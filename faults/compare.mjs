// @ts-check
/**
 * Compares the figures of all runs in a folder: `npm run faults:compare` writes
 * docs/evidence/real-faults.md from the JSON files beside it.
 */

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * @typedef {{ register: string, applied: number, lost: number, blindTrusted: number,
 *   blindLate: number, blindLateCareful: number, refused: number, staleAccepted: number }} Updates
 * @typedef {{ count: number, medianMs: number, latestMs: number }} Spread
 * @typedef {{ name: string, version: string, code?: string, failures: string[], updates: Updates[],
 *   options: { lock: string, seed: number, connections: string, ttlMs: number, waitMs: number },
 *   summary: { seconds: number, faults: number, acquisitions: number,
 *     acquisitionsPerSecond: number, overlapsByCause: Record<string, number>,
 *     overlapLongestMs: number, fenceFaults: number, disordered?: number,
 *     lossesByReason: Record<string, number>,
 *     learnedRunning?: Spread, learnedFrozen?: Spread,
 *     learnedLateThoughRunning: number, rejections: number, overdue: number,
 *     falseLosses?: Record<string, number>, overtaken?: number, starved?: number } }} Figures
 */

const folder = process.argv[2] ?? fileURLToPath(new URL("../docs/evidence/", import.meta.url));
const runs = readdirSync(folder)
  .filter((name) => /^faults-.*\.json$/.test(name))
  .map((name) => {
    const text = readFileSync(join(folder, name), "utf8");
    return /** @type {Figures} */ ({ ...JSON.parse(text), name: name.replace(/\.json$/, "") });
  })
  .sort((a, b) => orderOf(a) - orderOf(b) || a.name.localeCompare(b.name, "en"));

/** @param {Figures} run */
function orderOf({ options }) {
  const order = ["holdfast", "holdfast-without-admission"];
  const at = order.indexOf(options.lock);
  return at < 0 ? order.length : at;
}

/** @type {readonly (readonly [string, (run: Figures) => string | number])[]} */
const rows = [
  ["report", ({ name }) => `[seed and faults](${name}.md)`],
  ["sources", (run) => run.code ?? (isFenced(run) ? "earlier ones" : "–")],
  ["length, faults", ({ summary }) => `${Math.round(summary.seconds)} s, ${summary.faults}`],
  [
    "locks granted",
    ({ summary }) => `${summary.acquisitions} (${summary.acquisitionsPerSecond.toFixed(1)}/s)`,
  ],
  ["**overlaps of trusted leases**", ({ summary }) => sum(summary.overlapsByCause)],
  ["– a clock was stepped", ({ summary }) => summary.overlapsByCause["clock"] ?? 0],
  ["– keys were evicted", ({ summary }) => summary.overlapsByCause["eviction"] ?? 0],
  ["– a node had lost its data", ({ summary }) => summary.overlapsByCause["data"] ?? 0],
  ["– none of these", ({ summary }) => summary.overlapsByCause["nothing"] ?? 0],
  ["longest overlap", ({ summary }) => `${Math.round(summary.overlapLongestMs)} ms`],
  ["**updates lost, without a fence**", (run) => `${of(run, false, "lost")} of ${all(run, false)}`],
  ["– writes while every library reported the lock held", (run) => of(run, false, "blindTrusted")],
  ["– writes after a lease was over", (run) => of(run, false, "blindLate")],
  ["– of these right after a look", (run) => of(run, false, "blindLateCareful")],
  [
    "**updates lost, behind a fence**",
    (run) => (isFenced(run) ? `${of(run, true, "lost")} of ${all(run, true)}` : "has none"),
  ],
  ["– stale writes refused", (run) => (isFenced(run) ? of(run, true, "refused") : "–")],
  ["– stale writes accepted", (run) => (isFenced(run) ? of(run, true, "staleAccepted") : "–")],
  ["fences out of order", (run) => (isFenced(run) ? run.summary.fenceFaults : "–")],
  [
    "locks and registers whose operations no order explains",
    (run) => (isFenced(run) ? (run.summary.disordered ?? "–") : "–"),
  ],
  ["leases lost while held", ({ summary }) => sum(summary.lossesByReason)],
  [
    "learned after the end, running: median, latest",
    ({ summary }) => spread(summary.learnedRunning),
  ],
  [
    "learned after the end, stopped: median, latest",
    ({ summary }) => spread(summary.learnedFrozen),
  ],
  ["learned late though running for 50 ms", ({ summary }) => summary.learnedLateThoughRunning],
  [
    "**reported lost though held**",
    (run) => (isFenced(run) && run.summary.falseLosses ? sum(run.summary.falseLosses) : "–"),
  ],
  [
    "calls overtaken, and starved of these",
    ({ summary }) =>
      summary.overtaken === undefined ? "–" : `${summary.overtaken}, ${summary.starved}`,
  ],
  ["calls that did not settle in time", ({ summary }) => summary.overdue],
  ["unhandled rejections", ({ summary }) => summary.rejections],
];

/** @param {Record<string, number>} counts */
function sum(counts) {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** @param {Figures} run */
function isFenced({ options }) {
  return options.lock.startsWith("holdfast");
}

/**
 * @param {Figures} run
 * @param {boolean} fenced
 * @param {Exclude<keyof Updates, "register">} what
 */
function of(run, fenced, what) {
  const kind = run.updates.filter(({ register }) => register.endsWith("fenced") === fenced);
  return kind.reduce((total, updates) => total + updates[what], 0);
}

/**
 * @param {Figures} run
 * @param {boolean} fenced
 */
function all(run, fenced) {
  return of(run, fenced, "applied");
}

/**
 * Rounds, and never returns "-0".
 *
 * @param {number} ms
 */
function whole(ms) {
  return Math.round(ms) + 0;
}

/** @param {Spread | undefined} learned */
function spread(learned) {
  if (learned === undefined) return "–";
  return `${whole(learned.medianMs)}, ${whole(learned.latestMs)} ms (${learned.count})`;
}

const own = runs.filter(({ options }) => options.lock === "holdfast");
const codes = [...new Set(own.map(({ code }) => code))];
const totals = codes.map((code) => {
  const of = own.filter((run) => run.code === code);
  const minutes = of.reduce((total, { summary }) => total + summary.seconds, 0) / 60;
  const faults = of.reduce((total, { summary }) => total + summary.faults, 0);
  const failed = of.reduce((total, { failures }) => total + failures.length, 0);
  const sources = code === undefined ? "with earlier sources" : `with the sources ${code}`;
  return `- ${sources}: ${minutes.toFixed(0)} minutes, ${faults} faults, ${failed} things that must not happen`;
});
const cells = [
  ["", ...runs.map(({ version, options }) => titleOf(version, options.lock))],
  ...rows.map(([title, valueOf]) => [title, ...runs.map((run) => String(valueOf(run)))]),
];
const widths = (cells[0] ?? []).map((_, column) =>
  Math.max(3, ...cells.map((row) => row[column]?.length ?? 0)),
);
/** @param {readonly string[]} row */
const line = (row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
const table = [line(cells[0] ?? []), line(widths.map((width) => "-".repeat(width)))].concat(
  cells.slice(1).map(line),
);

/**
 * @param {string} version
 * @param {string} lock
 */
function titleOf(version, lock) {
  return lock === "holdfast-without-admission" ? `${version}, admission off` : version;
}

writeFileSync(
  join(folder, "real-faults.md"),
  `# Real servers under real faults

This page compares what Holdfast and other lock libraries did while real Redis servers, client processes
and networks failed: servers killed with and without their data, processes frozen, links cut, clocks stepped. A seed
draws the faults, and every history is checked afterwards, as
[faults/README.md](../../faults/README.md) describes. Only the last run of each kind is kept here.

Holdfast itself, by a hash of its sources (\`core\`, \`stores\` and \`clients\`):

${totals.join("\n")}

${table.join("\n")}

- A lease is trusted as long as its library says so by its own interface. An overlap is counted where
  two leases of one resource were trusted at one moment, by what was broken when the second one was
  granted: a clock step and an eviction break what any Redlock rests on; the loss of a node's data
  breaks it for a library that lets such a node vote at once.
- _Reported lost though held_: by the signal, by \`using\`, by \`release\`, \`extend\` or \`prove\`,
  before the end of validity, and nothing in the history explains it. A call was
  _overtaken_ if four or more later calls of other clients went first, and no fault befell its client;
  it _starved_ if it was never granted. "–" stands for runs that did not count these yet, and for
  libraries that name no reason for a loss.
- Every lock had the same TTL, wait and retry spacing; the exact settings are in each report. The
  peers ran with a limit of 500 ms for every command of their Redis clients, which they need and do
  not set themselves; Holdfast ran with ioredis as it comes.
- Half of all writes were made without another look at the lease, as most programs do. That loses
  updates with every lock, whenever a process is stopped for longer than its TTL; a fence refuses them.
- The runs shared a small machine with other work, so rates are not for comparison with anything else.
`,
);
