import type { ClientEvent, FaultEvent, History } from "../history.ts";
import type { Span } from "./spans.ts";

/** How a holder learns that its lease is lost. */
export type ReportedBy = "signal" | "using" | "release" | "extend" | "prove";

/** The first report that a lease was lost while it should still have been valid. */
export interface EarlyLoss {
  readonly lease: string;
  readonly resource: string;
  readonly by: ReportedBy;
  readonly reason: string;
  readonly atMs: number;
  /** How much of its validity was left, by the monotonic clock. */
  readonly leftMs: number;
  /** What in the history explains it; undefined for a false loss. */
  readonly explained: Explanation | undefined;
}

/**
 * `data`: a node forgot the lease, or had its clock set forward, which expires keys. `client clock`:
 * the wall clock of the holder's machine was set forward, and a lease ends by whichever clock says so
 * first. `rival`: another holder was granted the resource meanwhile, which is an overlap and is
 * judged as one.
 */
export type Explanation = "data" | "client clock" | "rival";

/** Reasons of a LeaseLostError. Other libraries name none, and nothing is judged of theirs. */
const reasons: ReadonlySet<string> = new Set([
  "expired",
  "taken",
  "unreachable",
  "clock",
  "maxHold",
]);

/** The library rounds the end down, and declares it a moment before a timer could miss it. */
const endMarginMs = 20;
/** Between what the nemesis does and when it is written down. */
const marginMs = 100;

/**
 * Losses that were reported before the end of validity. A lease is valid up to the latest end that
 * the library named for it, on the monotonic clock: a quorum of nodes keeps it at least that long,
 * unless they forget it or their clocks are set forward. Cut links, killed connections, refused
 * writes, stopped processes and wrong clocks do none of that, so they explain nothing.
 *
 * A release counts by when it was called. A slow one must not turn finished work into lost work.
 */
export function earlyLosses(history: History, spans: readonly Span[]): EarlyLoss[] {
  const spanOf = new Map(spans.map((span) => [span.lease, span]));
  const validUntilMs = new Map<string, number>();
  const calledMs = new Map<string, number>();
  const reported = new Set<string>();
  const losses: EarlyLoss[] = [];
  for (const event of history.events) {
    if (!("lease" in event)) continue;
    const { lease, resource } = event;
    if ("untilMs" in event && event.untilMs !== undefined) {
      validUntilMs.set(lease, Math.max(validUntilMs.get(lease) ?? -Infinity, event.untilMs));
    }
    if (event.what === "release") calledMs.set(lease, event.t);
    const span = spanOf.get(lease);
    const report = reportIn(event);
    if (report === undefined || span === undefined || reported.has(lease)) continue;
    reported.add(lease);
    const atMs = (event.what === "released" ? calledMs.get(lease) : undefined) ?? event.t;
    const leftMs = (validUntilMs.get(lease) ?? -Infinity) - atMs;
    if (leftMs <= endMarginMs) continue;
    const explained = explain(history, spans, { own: span, ...report, atMs, settledMs: event.t });
    losses.push({ lease, resource, ...report, atMs, leftMs, explained });
  }
  return losses;
}

/** What of it says that the lease is lost; undefined if nothing does. */
function reportIn(
  event: ClientEvent,
): { readonly by: ReportedBy; readonly reason: string } | undefined {
  if (event.what === "told") return ifLoss("signal", event.reason);
  if (event.what === "extend" || event.what === "prove") return ifLoss(event.what, event.outcome);
  if (event.what !== "released") return undefined;
  const { by, outcome } = event;
  // Not confirmed is no loss. `using` rejects, so whatever reason it names, the work counts as lost.
  if (by === "release" && outcome !== "taken") return undefined;
  return by === undefined ? undefined : ifLoss(by, outcome);
}

function ifLoss(
  by: ReportedBy,
  reason: string,
): { readonly by: ReportedBy; readonly reason: string } | undefined {
  return reasons.has(reason) ? { by, reason } : undefined;
}

interface Report {
  readonly own: Span;
  readonly reason: string;
  readonly atMs: number;
  /** When the answer was there: what happens to nodes until then may have shaped it. */
  readonly settledMs: number;
}

function explain(
  history: History,
  spans: readonly Span[],
  { own, reason, atMs, settledMs }: Report,
): Explanation | undefined {
  const meets = ({ fromMs, toMs }: Period, sinceMs: number): boolean =>
    fromMs <= settledMs + marginMs && toMs >= sinceMs - marginMs;
  if (reason === "clock" || reason === "taken") {
    if (periodsOf(history, forgetsAt).some((period) => meets(period, own.startedMs))) return "data";
    // A client learns of a step from the node's next reply, so it may act on it a little later.
    const sinceMs = own.startedMs - history.ttlMs;
    const steps = periodsOf(history, (fault) => stepsAt(fault, "clock-step"));
    if (steps.some((period) => meets(period, sinceMs))) return "data";
  }
  const client = Number(/^c(\d+)\./.exec(own.who)?.[1]) - 1;
  const ownSteps = periodsOf(history, (fault) =>
    fault.begin.clients.includes(client) ? stepsAt(fault, "client-clock-step") : undefined,
  );
  if (ownSteps.some((period) => meets(period, own.startedMs))) return "client clock";
  const isTaken = spans.some(
    ({ resource, lease, fromMs }) =>
      resource === own.resource && lease !== own.lease && fromMs > own.fromMs && fromMs <= atMs,
  );
  return isTaken && reason === "taken" ? "rival" : undefined;
}

interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

interface WholeFault {
  readonly begin: FaultEvent;
  readonly endMs: number;
}

function periodsOf(
  { faults, endMs }: History,
  periodOf: (fault: WholeFault) => Period | undefined,
): Period[] {
  const ends = new Map<number, number>();
  for (const { id, phase, t } of faults) if (phase === "end") ends.set(id, t);
  return faults.flatMap((begin) => {
    if (begin.phase !== "begin") return [];
    return periodOf({ begin, endMs: ends.get(begin.id) ?? endMs }) ?? [];
  });
}

/** When a node lost keys before their time. */
function forgetsAt({ begin, endMs }: WholeFault): Period | undefined {
  switch (begin.kind) {
    case "kill-empty":
      // It comes back without votes, so that what it does after that costs no lease.
      return { fromMs: begin.t, toMs: begin.t };
    case "flush-all":
    case "evict":
      return { fromMs: begin.t, toMs: endMs };
    default:
      return undefined;
  }
}

/** When a clock was set forward: ahead of the time, or back to it from behind. */
function stepsAt({ begin, endMs }: WholeFault, kind: string): Period | undefined {
  if (begin.kind !== kind) return undefined;
  const atMs = begin.detail.startsWith("-") ? endMs : begin.t;
  return { fromMs: atMs, toMs: atMs };
}
