import type { ClientEvent, FaultEvent, History } from "../history.ts";
import type { Span } from "./spans.ts";

/** The way in which the library reports a loss to the holder. */
export type ReportedBy = "signal" | "using" | "release" | "extend" | "prove";

/** The first report that a lease was lost while it should still have been valid. */
export interface EarlyLoss {
  readonly lease: string;
  readonly resource: string;
  readonly by: ReportedBy;
  readonly reason: string;
  readonly atMs: number;
  /** Validity left at the report, by the monotonic clock. */
  readonly leftMs: number;
  /** Event of the history that explains the loss; undefined for a false loss. */
  readonly explained: Explanation | undefined;
}

/**
 * `data`: a node forgot the lease, or its clock was set forward, which expires keys. `client
 * clock`: the wall clock of the holder's machine was set forward, and the earlier of both clocks
 * ends a lease. `rival`: another holder was granted the resource meanwhile, which is judged as an
 * overlap.
 */
export type Explanation = "data" | "client clock" | "rival";

/** Reasons of a LeaseLostError. Other libraries give none, so their losses are not judged. */
const reasons: ReadonlySet<string> = new Set([
  "expired",
  "taken",
  "unreachable",
  "clock",
  "max-hold",
]);

/** The library rounds the end down, and reports the loss shortly before a timer could miss it. */
const endMarginMs = 20;
/** Allowance for the delay between an action of the nemesis and its record. */
const marginMs = 100;

/**
 * Returns losses that were reported before the end of validity. A lease is valid up to the latest
 * end that the library reported for it, on the monotonic clock. A quorum of nodes keeps it at
 * least that long, unless they forget it or their clocks are set forward. Cut links, killed
 * connections, refused writes, stopped processes and wrong clocks do neither, so they explain no
 * loss.
 *
 * A release counts from the moment of the call: a slow release must not turn finished work into
 * lost work.
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

/** Returns how the event reports a loss of the lease; undefined if it does not. */
function reportIn(
  event: ClientEvent,
): { readonly by: ReportedBy; readonly reason: string } | undefined {
  if (event.what === "reported") return ifLoss("signal", event.reason);
  if (event.what === "extend" || event.what === "prove") return ifLoss(event.what, event.outcome);
  if (event.what !== "released") return undefined;
  const { by, outcome } = event;
  // Not confirmed is not lost. But `using` rejects, so for any reason the work counts as lost.
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
  /** Moment of the reply. Faults of nodes until then may have caused it. */
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
    // A client learns of a step from the node's next reply, so it may act on the step a little
    // later.
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

/** Returns the period in which a node lost keys too early. */
function forgetsAt({ begin, endMs }: WholeFault): Period | undefined {
  switch (begin.kind) {
    case "kill-empty":
      // The node comes back without a vote, so it costs no lease afterwards.
      return { fromMs: begin.t, toMs: begin.t };
    case "flush-all":
    case "evict":
      return { fromMs: begin.t, toMs: endMs };
    default:
      return undefined;
  }
}

/**
 * Returns the moment at which a clock was set forward: ahead of the time, or back to it from
 * behind.
 */
function stepsAt({ begin, endMs }: WholeFault, kind: string): Period | undefined {
  if (begin.kind !== kind) return undefined;
  const atMs = begin.detail.startsWith("-") ? endMs : begin.t;
  return { fromMs: atMs, toMs: atMs };
}
