// @ts-check
/** The plots and their file names. */

import { kindOf, titleOf } from "../contenders/list.mjs";
import { barChart, lineChart } from "./svg.mjs";
import { layouts, titleHere, titleOfPlace } from "./tables.mjs";

/** @import { Lookup, Place } from "./lookup.mjs" */

/** @param {Lookup} lookup @returns {Map<string, string>} file name → SVG */
export function plotsOf(lookup) {
  /** @type {Map<string, string>} */
  const plots = new Map();
  for (const workload of Object.keys(layouts)) {
    if (workload === "growth") continue;
    for (const place of lookup.places(workload)) plots.set(nameOf(place), barsOf(lookup, place));
  }
  for (const [unit, metric, yTitle] of [
    ["leases", "cycleCpuUs", "client CPU of a cycle, µs, while so many are held"],
    ["leases", "renewalCpuUs", "client CPU of a renewal, µs"],
    ["leases", "heapBytes", "heap per lease, B"],
    ["waiters", "perSecond", "critical sections a second"],
    ["waiters", "commands", "commands per critical section"],
    ["waiters", "longestWaitMs", "longest wait, ms"],
  ]) {
    const lines = linesOf(lookup, unit ?? "", metric ?? "");
    if (lines.length === 0) continue;
    const title = `Growth with ${unit}, N = 1`;
    const chart = lineChart({ title, xTitle: unit ?? "", yTitle: yTitle ?? "", lines });
    plots.set(`growth-${unit}-${kebab(metric ?? "")}.svg`, chart);
  }
  return plots;
}

/** @param {string} text */
function kebab(text) {
  const words = text.replaceAll("×", "x").replaceAll(/([a-z])([A-Z])/g, "$1-$2");
  return words.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
}

/** @param {Place} place */
export function nameOf({ workload, label, nodes }) {
  const detail = workload === "sequential" ? "" : `-${kebab(label)}`;
  return `${workload}${detail}-n${nodes}.svg`;
}

/** @param {Lookup} lookup @param {Place} place */
function barsOf(lookup, place) {
  const { metric = "", columns = [], heading = "" } = layouts[place.workload] ?? {};
  const column = columns.find((each) => each.metric === metric);
  // If F is the unit, its bar is drawn as well.
  const isRatio = column?.ratio === true;
  const isWaiting = place.workload === "contended";
  const bars = lookup.contenders(place).flatMap(({ contender }) => {
    const value = isRatio
      ? lookup.ratio(place, contender, metric)
      : lookup.median(place, contender, metric);
    if (value === undefined) return [];
    const kind = kindOf(contender.split("@")[0] ?? "");
    /** @type {"peer" | "own" | "raw"} */
    const colour = kind.peer ? "peer" : kind.id.includes("fenced") ? "own" : "raw";
    const digits = isRatio ? 2 : (column?.digits ?? 1);
    const absolute = lookup.median(place, contender, metric) ?? 0;
    const unit = isRatio ? ` (${absolute.toFixed(column?.digits ?? 1)})` : "";
    const text = value.toFixed(digits) + unit;
    return [{ label: titleHere(place, contender), value, kind: colour, text }];
  });
  const unit = isRatio
    ? `${column?.title}, as a multiple of ${isWaiting ? "raw polling" : "F"}`
    : (column?.title ?? metric);
  const title = `${heading}, ${titleOfPlace(place)}`;
  return barChart({ title, unit, bars, ...(isRatio ? { mark: 1 } : {}) });
}

/** @param {Lookup} lookup @param {string} unit @param {string} metric */
function linesOf(lookup, unit, metric) {
  const places = lookup.places("growth").filter(({ label }) => label.endsWith(` ${unit}`));
  return ["floor", "fenced", "unfenced"].flatMap((contender) => {
    const points = places.flatMap((place) => {
      const value = lookup.median(place, contender, metric);
      return value === undefined
        ? []
        : [/** @type {const} */ ([Number.parseInt(place.label, 10), value])];
    });
    return points.length === 0 ? [] : [{ label: titleOf(contender), points }];
  });
}
