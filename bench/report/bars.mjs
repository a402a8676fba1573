// @ts-check
/** The goals of Holdfast, and whether it reached them. */

import { titleOf } from "../contenders/list.mjs";

/**
 * @import { Lookup, Place } from "./lookup.mjs"
 * @typedef {{ what: string, bar: string, ours: string, met: boolean | undefined }} Verdict
 */

/** @param {number} value */
function short(value) {
  if (Math.abs(value) >= 100) return value.toFixed(0);
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/**
 * @param {string} what
 * @param {"≥" | "≤" | "<"} sign
 * @param {number} bar
 * @param {number | undefined} value
 * @param {string} unit
 * @returns {Verdict}
 */
function verdict(what, sign, bar, value, unit) {
  const text = `${sign} ${bar}${unit}`;
  if (value === undefined) return { what, bar: text, ours: "not measured", met: undefined };
  const met = sign === "≥" ? value >= bar : sign === "<" ? value < bar : value <= bar;
  return { what, bar: text, ours: `${short(value)}${unit}`, met };
}

/** Workload, in flight, metric, sign, and the goals: unfenced N = 1 and 5, fenced N = 1 and 5. */
const throughputBars = /** @type {const} */ ([
  ["sequential", "1", "perSecond", "≥", [0.95, 1.0], [0.85, 0.95]],
  ["inflight", "64", "perSecond", "≥", [2.3, 3.4], [1.7, 2.6]],
  ["inflight", "1000", "perSecond", "≥", [3.0, 4.0], [2.1, 3.2]],
  ["inflight", "64", "cpuUs", "≤", [0.4, 0.22], [0.5, 0.28]],
]);

/** @param {Lookup} lookup @returns {Verdict[]} */
function throughputVerdicts(lookup) {
  return throughputBars.flatMap(([workload, label, metric, sign, unfenced, fenced]) =>
    [1, 5].flatMap((nodes, at) =>
      Object.entries({ unfenced, fenced }).map(([contender, bars]) => {
        const value = lookup.ratio({ workload, label, nodes }, contender, metric);
        const name = workload === "sequential" ? workload : `${label} in flight`;
        const subject = metric === "cpuUs" ? `client CPU, ${name}` : name;
        return verdict(`${subject}, N = ${nodes}, ${contender}`, sign, bars[at] ?? 0, value, " F");
      }),
    ),
  );
}

/**
 * Label, nodes, and goals: against raw polling, against the best peer, commands, wait, re-grabs.
 */
const contendedBars = /** @type {const} */ ([
  { label: "1 × 50, 1 ms", nodes: 1, polling: 1.5, peer: 1.5, commands: 1.5, waitMs: 150 },
  { label: "4 × 10, 1 ms", nodes: 1, polling: 1.15, commands: 2, regrab: 5 },
  { label: "4 × 10, none", nodes: 1, polling: 1.15, commands: 2, regrab: 5 },
  { label: "1 × 50, 1 ms", nodes: 5, polling: 1.8, commands: 7 },
  { label: "4 × 10, 1 ms", nodes: 5, polling: 3, commands: 14 },
  { label: "4 × 10, none", nodes: 5, polling: 3, commands: 14 },
]);

/** @param {Lookup} lookup @returns {Verdict[]} */
function contendedVerdicts(lookup) {
  return contendedBars.flatMap((bars) => {
    const place = { workload: "contended", label: bars.label, nodes: bars.nodes };
    const name = `contended, N = ${bars.nodes}, ${bars.label}`;
    const median = (/** @type {string} */ metric) => lookup.median(place, "fenced", metric);
    const list = [
      verdict(
        `${name}: sections/s against raw polling`,
        "≥",
        bars.polling,
        lookup.ratio(place, "fenced", "perSecond"),
        " ×",
      ),
      verdict(`${name}: commands per section`, "≤", bars.commands, median("commands"), ""),
    ];
    if ("peer" in bars) {
      const best = againstBestPeer(lookup, place, "fenced", "perSecond", true);
      const peer = best === undefined ? "" : ` (${titleOf(best.peer)})`;
      const what = `${name}: sections/s against the best peer${peer}`;
      list.push(verdict(what, "≥", bars.peer, best?.ratio, " ×"));
      const passed = againstBestPeer(lookup, place, "fenced", "passedOnPerSecond", true);
      if (passed !== undefined) {
        // Without a goal. Shows what the number of sections hides: a peer that starves others looks
        // fast.
        const ours = `${short(passed.ratio)} ×`;
        const who = titleOf(passed.peer);
        list.push({
          what: `${name}: passed on to another task/s, against the best peer (${who})`,
          bar: "none",
          ours,
          met: undefined,
        });
      }
      const longest = lookup.greatest(place, "fenced", "longestWaitMs");
      list.push(verdict(`${name}: longest wait`, "≤", bars.waitMs, longest, " ms"));
    }
    if ("regrab" in bars) {
      const share = median("regrabShare");
      const percent = share === undefined ? undefined : share * 100;
      list.push(verdict(`${name}: taken again by the releaser`, "<", bars.regrab, percent, " %"));
    }
    return list;
  });
}

/** @param {Lookup} lookup @returns {Verdict[]} */
function safetyVerdicts(lookup) {
  const places = lookup.places("contended");
  const own = ["fenced", "unfenced", "fenced-node-redis", "unfenced-node-redis"];
  const worst = (/** @type {string} */ metric) => {
    const seen = places.flatMap((place) =>
      own.map((id) => lookup.greatest(place, id, metric)).filter((value) => value !== undefined),
    );
    return seen.length === 0 ? undefined : Math.max(...seen);
  };
  const checked = lookup.series.filter(
    ({ workload, contender }) => workload === "contended" && own.includes(contender),
  );
  const counted = checked.reduce((sum, { problems }) => sum + (problems["overlaps"] ?? 0), 0);
  const overlaps = checked.length === 0 ? undefined : counted;
  const killed = [1, 5].flatMap((nodes) => {
    const cost = (/** @type {string} */ label) =>
      lookup.greatest({ workload: "killed", label, nodes }, "fenced", "costMs");
    return [
      verdict(`a killed waiter costs the others, N = ${nodes}`, "≤", 400, cost("waiter"), " ms"),
      verdict(
        `a killed holder costs the others, N = ${nodes} (TTL 2000 ms)`,
        "≤",
        2_050,
        cost("holder"),
        " ms",
      ),
    ];
  });
  return [
    verdict(
      "all contended rows: starved tasks, Holdfast, worst round",
      "≤",
      0,
      worst("starved"),
      "",
    ),
    verdict("all contended rows: overlaps, Holdfast, all rounds", "≤", 0, overlaps, ""),
    ...killed,
  ];
}

/** @param {Lookup} lookup @returns {Verdict[]} */
function otherVerdicts(lookup) {
  const own = ["unfenced", "fenced"];
  const sick = ["stopped", "killed"].flatMap((label) =>
    own.flatMap((id) =>
      /** @type {const} */ ([
        ["p50Ms", 1.1],
        ["p99Ms", 1.5],
      ]).map(([metric, bar]) => {
        const value = lookup.median({ workload: "sick", label, nodes: 5 }, id, metric);
        const before = label === "killed" ? "healthy before" : "healthy";
        const well = lookup.median({ workload: "sick", label: before, nodes: 5 }, id, metric);
        const ratio = value === undefined || !well ? undefined : value / well;
        const name = `one of five ${label}: ${metric.slice(0, 3)}, ${id}`;
        return verdict(name, "≤", bar, ratio, " × healthy");
      }),
    ),
  );
  const renew = lookup.places("renew").flatMap((place) =>
    own.flatMap((id) => {
      const name = `${place.label} renewals, N = ${place.nodes}, ${id}`;
      const lost = verdict(`${name}: lost`, "≤", 0, lookup.greatest(place, id, "lost"), "");
      if (place.nodes !== 1) return [lost];
      const cpu = lookup.median(place, id, "cpuUs");
      return [verdict(`${name}: client CPU each`, "≤", 5, cpu, " µs"), lost];
    }),
  );
  const held = lookup.places("held").flatMap((place) =>
    own.map((id) => {
      const heap = lookup.median(place, id, "heapBytes");
      return verdict(`heap per held lease, ${id}`, "≤", 300, heap, " B");
    }),
  );
  return [...sick, ...renew, ...held];
}

/** Verdicts on the cost of many waiting managers. @param {Lookup} lookup @returns {Verdict[]} */
function waitingVerdicts(lookup) {
  const place = (/** @type {number} */ count) => {
    return { workload: "waiting", label: `${count} waiters`, nodes: 1 };
  };
  /** Returns the ratio of `metric` with `many` waiters to `metric` with `few`. */
  const growth = (
    /** @type {string} */ metric,
    /** @type {number} */ few,
    /** @type {number} */ many,
  ) => {
    const [less, more] = [few, many].map((count) => lookup.median(place(count), "fenced", metric));
    return more === undefined || !less ? undefined : more / less;
  };
  const failed = [1, 10, 100, 1_000, 5_000]
    .flatMap((count) => lookup.greatest(place(count), "fenced", "failed") ?? [])
    .reduce((/** @type {number | undefined} */ worst, one) => Math.max(worst ?? 0, one), undefined);
  const cost = lookup.ratio(place(1_000), "fenced", "serverCpuPercent");
  const beside = [1_000, 5_000].map((count) => {
    const what = `p99 of a lock beside ${count} waiters`;
    return verdict(what, "≤", 2, growth("otherP99Ms", 0, count), " × without them");
  });
  return [
    verdict(
      "server CPU per ask, 1000 waiters",
      "≤",
      2,
      growth("askCpuUs", 10, 1_000),
      " × with 10",
    ),
    verdict("server CPU, 1000 waiters", "<", 1, cost, " × as many that poll"),
    verdict("waiters that failed, of 1 to 5000, worst round", "≤", 0, failed, ""),
    ...beside,
    verdict(
      "hand-over p99, 1000 waiters",
      "≤",
      3,
      growth("handOverP99Ms", 10, 1_000),
      " × with 10",
    ),
  ];
}

/** @param {Lookup} lookup @returns {Verdict[]} */
function importVerdicts(lookup) {
  return lookup.places("import").map((place) => {
    const value = lookup.ratio(place, "fenced", "importMs", "redlock5");
    return verdict("cold import", "≤", 1.5, value, " × redlock 5");
  });
}

/** @param {Lookup} lookup */
export function verdictsOf(lookup) {
  return [
    ...throughputVerdicts(lookup),
    ...contendedVerdicts(lookup),
    ...safetyVerdicts(lookup),
    ...otherVerdicts(lookup),
    ...waitingVerdicts(lookup),
    ...importVerdicts(lookup),
  ];
}

/**
 * Returns the best peer, and our ratio to it in the same rounds.
 *
 * @param {Lookup} lookup
 * @param {Place} place
 * @param {string} contender
 * @param {string} metric
 * @param {boolean} moreIsBetter
 */
export function againstBestPeer(lookup, place, contender, metric, moreIsBetter) {
  const peers = lookup.peers(place, metric).sort((a, b) => a.value - b.value);
  const best = moreIsBetter ? peers.at(-1) : peers[0];
  if (best === undefined) return undefined;
  const ratio = lookup.ratio(place, contender, metric, best.id);
  return ratio === undefined ? undefined : { peer: best.id, ratio };
}
