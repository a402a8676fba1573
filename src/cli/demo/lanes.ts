import type { AccountName, DemoEvent } from "./events.ts";
import { eventsOf, expiryOf } from "./verdict.ts";

/** State of a worker during a span of time. */
export type Phase = "waits" | "holds" | "frozen" | "overdue";

export interface Span {
  readonly phase: Phase;
  readonly fromMs: number;
  readonly toMs: number;
  /** Fence of the lease, or "". */
  readonly fence: string;
  /** Text drawn into the span if there is room. */
  readonly label: string;
}

const fenceDigitsMax = 4;

export type MarkKind = "killed" | "write" | "stale" | "refused";

export interface Mark {
  readonly kind: MarkKind;
  readonly atMs: number;
}

export interface Lane {
  readonly name: string;
  readonly spans: readonly Span[];
  readonly marks: readonly Mark[];
}

/** Returns a worker's lane, computed from its events up to `nowMs`. */
export function workerLane(events: readonly DemoEvent[], name: string, nowMs: number): Lane {
  const spans: Span[] = [];
  const marks: Mark[] = [];
  let open: { phase: Phase; fromMs: number; fence: string } | undefined;
  const enter = (phase: Phase | undefined, atMs: number, fence = ""): void => {
    if (open !== undefined) spans.push({ ...open, toMs: atMs, label: labelOf(events, open.fence) });
    open = phase === undefined ? undefined : { phase, fromMs: atMs, fence };
  };
  const isOpen = (): typeof open => open;
  for (const event of events) {
    if (event.worker !== name) continue;
    if (event.kind === "ready" || event.kind === "released" || event.kind === "lost") {
      enter("waits", event.atMs);
    } else if (event.kind === "acquired") enter("holds", event.atMs, event.fence);
    else if (event.kind === "frozen") enter("frozen", event.atMs, isOpen()?.fence);
    else if (event.kind === "resumed") enter("overdue", event.atMs, isOpen()?.fence);
    else if (event.kind === "killed") {
      enter(undefined, event.atMs);
      marks.push({ kind: "killed", atMs: event.atMs });
    } else if (event.kind === "write") {
      const late = isLate(events, event);
      if (late) marks.push({ kind: markOf(event.answer, late), atMs: event.atMs });
    }
  }
  enter(undefined, nowMs);
  return { name, spans: spans.flatMap((span) => splitAtExpiry(events, span)), marks };
}

/** Returns an account's lane: the writes that arrived. */
export function accountLane(events: readonly DemoEvent[], account: AccountName): Lane {
  const marks = eventsOf(events, "write")
    .filter((write) => write.account === account)
    .map((write) => ({ kind: markOf(write.answer, isLate(events, write)), atMs: write.atMs }));
  return { name: account, spans: [], marks };
}

/**
 * Returns "turn" if the fences are too long for the picture (as on Redis). The labels then number
 * the turns instead.
 */
export function labelKind(events: readonly DemoEvent[]): "fence" | "turn" {
  const long = eventsOf(events, "acquired").some(({ fence }) => fence.length > fenceDigitsMax);
  return long ? "turn" : "fence";
}

function labelOf(events: readonly DemoEvent[], fence: string): string {
  if (labelKind(events) === "fence") return fence;
  const turns = eventsOf(events, "acquired");
  return String(turns.findIndex((turn) => turn.fence === fence) + 1);
}

/** Splits the span of a frozen worker at the end of its lease. */
function splitAtExpiry(events: readonly DemoEvent[], span: Span): readonly Span[] {
  if (span.phase !== "frozen") return [span];
  const overMs = expiryOf(events, span.fence);
  if (overMs >= span.toMs) return [{ ...span, label: "" }];
  return [
    { ...span, toMs: overMs, label: "" },
    { ...span, phase: "overdue", fromMs: overMs, label: "" },
  ];
}

function isLate(events: readonly DemoEvent[], write: DemoEvent & { kind: "write" }): boolean {
  if (write.answer === "refused") return true;
  return eventsOf(events, "write").some(
    (other) =>
      other.account === write.account &&
      other.atMs < write.atMs &&
      BigInt(other.fence) > BigInt(write.fence),
  );
}

function markOf(answer: "accepted" | "refused", late: boolean): MarkKind {
  if (answer === "refused") return "refused";
  return late ? "stale" : "write";
}
