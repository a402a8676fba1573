import type { History } from "../history.ts";
import { brokenWindows, shareUnbroken, type BrokenWindow } from "./assumptions.ts";
import { failuresOf, type Failure } from "./failures.ts";
import { earlyLosses, type EarlyLoss } from "./false-losses.ts";
import { lateReports, lossesOf, type Loss } from "./losses.ts";
import { fenceFaults, judged, orderFaults } from "./judged.ts";
import { overlapsOf, type Overlap } from "./overlaps.ts";
import { spansOf, type Span } from "./spans.ts";
import { updatesOf, type Updates } from "./updates.ts";
import { waitsOf, type Waits } from "./waits.ts";

export interface Findings {
  readonly spans: readonly Span[];
  readonly windows: readonly BrokenWindow[];
  readonly overlaps: readonly Overlap[];
  readonly updates: readonly Updates[];
  readonly losses: readonly Loss[];
  readonly earlyLosses: readonly EarlyLoss[];
  readonly waits: readonly Waits[];
  /** Locks and registers whose operations have no order that explains them. */
  readonly disordered: readonly string[];
  readonly summary: Summary;
  /** Broken rules. Empty if the run passed. */
  readonly broken: readonly Failure[];
  /** Their texts. */
  readonly failures: readonly string[];
}

export interface Summary {
  readonly seconds: number;
  readonly calls: number;
  readonly acquisitions: number;
  readonly acquisitionsPerSecond: number;
  readonly refusals: Readonly<Record<string, number>>;
  readonly faults: number;
  readonly faultsByKind: Readonly<Record<string, number>>;
  readonly shareWithinAssumptions: number;
  readonly shareWithoutDataLoss: number;
  /**
   * Number of overlaps of trusted leases by broken assumption: clock, eviction, data, or nothing.
   */
  readonly overlapsByCause: Readonly<Record<string, number>>;
  readonly overlapLongestMs: number;
  readonly fenceFaults: number;
  /** Locks and registers whose operations have no order that explains them. */
  readonly disordered: number;
  readonly lossesByReason: Readonly<Record<string, number>>;
  readonly learnedRunning: Spread | undefined;
  readonly learnedFrozen: Spread | undefined;
  /** Losses reported late or never, though the process ran its timers for 50 ms or longer. */
  readonly learnedLateThoughRunning: number;
  /** Unexplained losses before the end of the lease, by kind of report and reason. */
  readonly falseLosses: Readonly<Record<string, number>>;
  /** Explained losses before the end of the lease, by explanation. */
  readonly earlyLossesExplained: Readonly<Record<string, number>>;
  /** Calls that several later ones overtook, and those of them that were never granted. */
  readonly overtaken: number;
  readonly starved: number;
  readonly acquisitionsAfterHealing: number;
  readonly rejections: number;
  readonly overdue: number;
}

/** Milliseconds from the end of validity to the report of the loss; negative is early. */
export interface Spread {
  readonly count: number;
  readonly earliestMs: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly latestMs: number;
}

/** Returns all findings of a run, and the reasons for which it failed. */
export function findingsOf(history: History): Findings {
  const spans = spansOf(history);
  const windows = brokenWindows(history);
  const overlaps = overlapsOf(spans, windows);
  const updates = updatesOf(history, spans);
  const losses = lossesOf(history);
  const early = earlyLosses(history, spans);
  const waits = waitsOf(history);
  const violations = judged(history, spans, windows);
  const disordered = orderFaults(history, spans, windows);
  const found = {
    spans,
    windows,
    overlaps,
    updates,
    losses,
    earlyLosses: early,
    waits,
    disordered,
  };
  const broken = failuresOf(history, { ...found, violations });
  const failures = broken.map(({ text }) => text);
  return { ...found, summary: summarise(history, found), broken, failures };
}

function summarise(
  history: History,
  found: Omit<Findings, "summary" | "broken" | "failures">,
): Summary {
  const { events, faults, startMs, endMs, healedMs } = history;
  const { spans, windows, overlaps, losses } = found;
  const seconds = (endMs - startMs) / 1_000;
  const begun = faults.filter(({ phase }) => phase === "begin");
  const late = losses.filter(({ lateMs }) => lateMs !== undefined);
  return {
    seconds,
    calls: events.filter(({ what }) => what === "call").length,
    acquisitions: spans.length,
    acquisitionsPerSecond: spans.length / seconds,
    refusals: countBy(events.flatMap((event) => (event.what === "refused" ? [event.why] : []))),
    faults: begun.length,
    faultsByKind: countBy(begun.map(({ kind }) => kind)),
    shareWithinAssumptions: shareUnbroken(history, windows, ["clock", "eviction"]),
    shareWithoutDataLoss: shareUnbroken(history, windows, ["clock", "eviction", "data"]),
    overlapsByCause: countBy(overlaps.map(({ broken }) => broken ?? "nothing")),
    overlapLongestMs: Math.max(0, ...overlaps.map(({ fromMs, toMs }) => toMs - fromMs)),
    fenceFaults: fenceFaults(spans).length,
    disordered: found.disordered.length,
    lossesByReason: countBy(losses.map(({ reason }) => reason)),
    learnedRunning: spread(late.filter(({ wasFrozen }) => !wasFrozen)),
    learnedFrozen: spread(late.filter(({ wasFrozen }) => wasFrozen)),
    learnedLateThoughRunning: lateReports(history).length,
    falseLosses: countBy(
      found.earlyLosses.flatMap(({ by, reason, explained }) =>
        explained === undefined ? [`${by}: ${reason}`] : [],
      ),
    ),
    earlyLossesExplained: countBy(found.earlyLosses.flatMap(({ explained }) => explained ?? [])),
    overtaken: found.waits.reduce((sum, { overtaken }) => sum + overtaken, 0),
    starved: found.waits.reduce((sum, { starved }) => sum + starved, 0),
    acquisitionsAfterHealing: spans.filter(({ fromMs }) => fromMs > healedMs).length,
    rejections: events.filter(({ what }) => what === "rejection").length,
    overdue: events.filter(({ what }) => what === "overdue").length,
  };
}

function spread(losses: readonly Loss[]): Spread | undefined {
  const sorted = losses.map(({ lateMs }) => lateMs ?? 0).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  if (sorted.length === 0) return undefined;
  return {
    count: sorted.length,
    earliestMs: at(0),
    medianMs: at(0.5),
    p99Ms: at(0.99),
    latestMs: at(1),
  };
}

export function countBy(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const key of keys.toSorted()) counts[key] = (counts[key] ?? 0) + 1;
  return counts;
}
