import type { Spread } from "../check/summary.ts";
import { describeOffset } from "../clock-offsets.ts";
import { faultKinds } from "../kinds.ts";
import { isHoldfast, type Options } from "../options.ts";
import { settingsOf } from "../locks/settings.ts";
import type { Finished } from "./report.ts";
import { tableOf } from "./table.ts";

/** Returns the report as a page. Every figure in it is counted from the histories of the run. */
export function markdownOf(finished: Finished, name: string): string {
  const { version, options, findings } = finished;
  const { failures } = findings;
  const verdict =
    failures.length === 0
      ? "Nothing that must not happen has happened."
      : `**${failures.length} things happened that must not happen**: see the end.`;
  return [
    `# Real faults: ${version}, seed ${options.seed}`,
    verdict,
    `![Holders and faults over time](${name}.svg)`,
    setUp(finished),
    "## What happened",
    happened(finished),
    "## Trusted leases that overlapped",
    overlapped(finished),
    "## What the lock protected",
    updates(finished),
    "## When holders learned of a loss",
    learned(finished),
    "## Losses that were none",
    falseLosses(finished),
    "## How calls waited",
    waited(finished),
    "## Faults",
    tableOf(["fault", "times"], Object.entries(findings.summary.faultsByKind)),
    ...(failures.length === 0 ? [] : ["## What must not happen", failed(failures)]),
  ]
    .join("\n\n")
    .concat("\n");
}

function setUp({ options, code, clockSteps, history }: Finished): string {
  const { nodes, clients, workers, connections } = options;
  const client =
    connections === "plain"
      ? "ioredis as it comes"
      : "ioredis with a limit of 500 ms for every command and no offline queue";
  const paragraphs = [
    `${clients} client processes with ${workers} workers each took ${history.resources.length} locks on ` +
      `${nodes} redis-servers, each behind a proxy per client (${client}). Settings: ` +
      `${settingsOf(options)}. Under each lock they read counters in Postgres and Redis, thought ` +
      "for 5 ms to twice the TTL, and wrote them back; every other time without looking at the " +
      "lease again. The registers themselves had no faults.",
    ...(clockSteps
      ? []
      : ["No clock was shifted: there was no gcc to compile the library for it."]),
    ...(code === undefined
      ? []
      : [`Sources: ${code}, a hash of \`core\`, \`stores\`, \`clients\`.`]),
    ["```sh", commandOf(options), "```"].join("\n"),
  ];
  return paragraphs.join("\n\n");
}

function commandOf(options: Options): string {
  const { seconds, seed, lock, nodes, clients, workers, resources, offsets, kinds } = options;
  const words = [
    `npm run faults -- --seconds ${seconds} --seed ${seed} --lock ${lock}`,
    `--nodes ${nodes} --clients ${clients} --workers ${workers} --resources ${resources}`,
  ];
  if (offsets === "none") words.push("--offsets none");
  if (kinds.length < faultKinds.length) words.push(`--kinds ${kinds.join()}`);
  return words.join(" ");
}

function happened({ options, findings: { summary, losses } }: Finished): string {
  const refusals = Object.entries(summary.refusals).map(([why, count]) => `${count} ${why}`);
  return tableOf(
    ["", ""],
    [
      ["length", `${summary.seconds.toFixed(0)} s`],
      ["faults", summary.faults],
      ["locks asked for", summary.calls],
      ["granted", `${summary.acquisitions} (${summary.acquisitionsPerSecond.toFixed(1)} a second)`],
      ["not granted", refusals.join(", ") || "0"],
      ["lost while held", losses.length],
      ["reported lost though held", isHoldfast(options.lock) ? sum(summary.falseLosses) : "–"],
      ["overtaken, and starved of these", `${summary.overtaken}, ${summary.starved}`],
      ["granted after everything had healed", summary.acquisitionsAfterHealing],
      ["unhandled rejections", summary.rejections],
      ["calls that did not settle in time", summary.overdue],
    ],
  );
}

function overlapped({ findings: { summary, overlaps } }: Finished): string {
  const { overlapsByCause: causes } = summary;
  const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
  return [
    tableOf(
      ["what was broken when the second lease was granted", "overlaps"],
      [
        ["a node's clock was stepped (breaks an assumption)", causes["clock"] ?? 0],
        ["a node evicted keys (breaks an assumption)", causes["eviction"] ?? 0],
        ["a node had lost its data", causes["data"] ?? 0],
        ["nothing of these", causes["nothing"] ?? 0],
      ],
    ),
    `The longest lasted ${summary.overlapLongestMs.toFixed(0)} ms; ${overlaps.length} in all. ` +
      `No clock was stepped and no key evicted in ${percent(summary.shareWithinAssumptions)} of ` +
      `the time; nor was data lost in ${percent(summary.shareWithoutDataLoss)} of it. Fences that ` +
      `were not unique, or not greater than every one granted before: ${summary.fenceFaults}. ` +
      `Locks and registers whose operations no order explains: ${summary.disordered}.`,
  ].join("\n\n");
}

function updates({ findings }: Finished): string {
  const rows = findings.updates.filter(({ applied, refused }) => applied + refused > 0);
  const head = ["register", "updates", "lost", "both trusted", "one too late", "and had looked"];
  const columns = [...head, "stale refused", "stale accepted"];
  const table = tableOf(
    columns,
    rows.map((row) => [
      row.register,
      row.applied,
      row.lost,
      row.blindTrusted,
      row.blindLate,
      row.blindLateCareful,
      row.register.endsWith("fenced") ? row.refused : "–",
      row.register.endsWith("fenced") ? row.staleAccepted : "–",
    ]),
  );
  const explained =
    "An update is lost if a later write overwrites it without having read it. Such a write is counted " +
    "as _both trusted_ if every writer concerned began and ended while its library reported the " +
    "lock as held, and as _one too late_ if one of them wrote after that: without looking, or, " +
    "if it _had looked_, because it was stopped between the look and the write.";
  return `${table}\n\n${explained}`;
}

function learned({ findings: { summary } }: Finished): string {
  const reasons = Object.entries(summary.lossesByReason).map(([why, n]) => `${n} ${why}`);
  const row = (what: string, spread: Spread | undefined): (string | number)[] => {
    if (spread === undefined) return [what, 0, "–", "–", "–", "–"];
    const { count, earliestMs, medianMs, p99Ms, latestMs } = spread;
    const times = [earliestMs, medianMs, p99Ms, latestMs].map((ms) => ms.toFixed(1));
    return [what, count, ...times];
  };
  return [
    `Losses: ${reasons.join(", ") || "none"}. Times in ms from the end of validity, as the ` +
      "library had named it (Holdfast in whole milliseconds, rounded down); negative is before it:",
    tableOf(
      ["", "losses", "earliest", "median", "99 %", "latest"],
      [
        row("process was running", summary.learnedRunning),
        row("process was stopped meanwhile", summary.learnedFrozen),
      ],
    ),
    "Learned after the end although the process had been running for 50 ms or longer since then: " +
      `${summary.learnedLateThoughRunning}. The rest is a machine with more to do than it has cores: ` +
      "the first thing a process learned when it ran again was the loss.",
  ].join("\n\n");
}

function falseLosses({ options, findings: { summary, earlyLosses } }: Finished): string {
  if (!isHoldfast(options.lock)) return "Not judged: the library names no reason for a loss.";
  const { falseLosses: unexplained, earlyLossesExplained: explained } = summary;
  const rows = [
    ...Object.entries(unexplained).map(([what, n]): [string, number] => [
      `**nothing**: ${what}`,
      n,
    ]),
    ["a node forgot keys, or its clock was set forward", explained["data"] ?? 0] as const,
    ["the client's own clock was set forward", explained["client clock"] ?? 0] as const,
    ["another lease overlapped", explained["rival"] ?? 0] as const,
  ];
  return [
    `Leases that were reported lost before their end: ${earlyLosses.length}. An end is the latest ` +
      "that the library had named, on the monotonic clock; a release counts by when it was called.",
    tableOf(["what explains it", "losses"], rows),
  ].join("\n\n");
}

function waited({ findings: { waits } }: Finished): string {
  const rows = waits.map((one) => [
    `${one.client + 1}`,
    describeOffset(one.clockOffsetMs),
    one.calls,
    one.granted,
    `${one.medianWaitMs.toFixed(0)} ms`,
    `${one.longestWaitMs.toFixed(0)} ms`,
    one.overtaken,
    one.starved,
  ]);
  const explained =
    "A call counts as overtaken if four or more calls of other clients for its resource, made later, " +
    "were granted before it ended, and no fault befell its process or links meanwhile. It starved " +
    "if it was never granted.";
  const columns = ["client", "its clock", "calls", "granted", "median wait", "longest"];
  return `${tableOf([...columns, "overtaken", "starved"], rows)}\n\n${explained}`;
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

function failed(failures: readonly string[]): string {
  const shown = failures.slice(0, 30).map((failure) => `- ${failure.split("\n")[0]}`);
  if (failures.length > shown.length) shown.push(`- and ${failures.length - shown.length} more`);
  return shown.join("\n");
}
