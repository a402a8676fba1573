import { registers, type AppliedWrite, type History, type Register } from "../history.ts";
import type { WriteEvent } from "../history.ts";
import type { Span } from "./spans.ts";

/** Outcome of the updates of one kind of register. */
export interface Updates {
  readonly register: Register;
  /** Writes that the server applied. */
  readonly applied: number;
  /** Applied updates that the final value does not contain: another write overwrote them unseen. */
  readonly lost: number;
  /** Writes that overwrote others unseen, while every writer could trust its lease. */
  readonly blindTrusted: number;
  /** Writes that overwrote others unseen after a lease was over, or may have been over … */
  readonly blindLate: number;
  /**
   * … though its holder had checked it right before: it was stopped between the check and the
   * write.
   */
  readonly blindLateCareful: number;
  /** Refused by the guard because of a greater fence, at the claim or at the write. */
  readonly refused: number;
  /** Applied although the register had seen a greater fence. */
  readonly staleAccepted: number;
  /** Disagreements between the reply to a client and the writes that the server applied. */
  readonly contradictions: readonly string[];
}

export function updatesOf(history: History, spans: readonly Span[]): Updates[] {
  const writes = history.events.filter((event): event is WriteEvent => event.what === "write");
  const onTime = writtenOnTime(writes, spans);
  return registers.map((register) => {
    const mine = writes.filter((write) => write.register === register);
    return updatesOfOne(history, register, mine, onTime);
  });
}

function updatesOfOne(
  history: History,
  register: Register,
  mine: readonly WriteEvent[],
  onTime: ReadonlySet<string>,
): Updates {
  const applied = history.applied.filter((write) => write.register === register);
  const careful = new Set(mine.filter((write) => write.careful).map(({ op }) => op));
  const count = { lost: 0, blindTrusted: 0, blindLate: 0, blindLateCareful: 0, staleAccepted: 0 };
  for (const resource of history.resources) {
    const chain = applied.filter((write) => write.resource === resource);
    count.lost += chain.length - (chain.at(-1)?.n ?? 0);
    for (const { fence, fenceBefore } of chain) {
      const fenced = fence !== undefined && fenceBefore !== undefined;
      if (fenced && fence < fenceBefore) count.staleAccepted += 1;
    }
    for (const involved of blindWrites(chain)) {
      const late = involved.filter(({ op }) => !onTime.has(op));
      count[late.length === 0 ? "blindTrusted" : "blindLate"] += 1;
      if (late.length > 0 && late.every(({ op }) => careful.has(op))) count.blindLateCareful += 1;
    }
  }
  const ops = new Set(applied.map(({ op }) => op));
  const refused = mine.filter(({ phase }) => phase === "refused" || phase === "refused-claim");
  const contradictions = [
    ...mine.filter(({ phase, op }) => phase === "accepted" && !ops.has(op)),
    ...refused.filter(({ op }) => ops.has(op)),
  ].map(({ op, phase }) => `${register}: ${op} was ${phase}, the server says otherwise`);
  return { register, applied: applied.length, refused: refused.length, ...count, contradictions };
}

/**
 * Returns each write over a value that its writer had not read, with the writes that it overwrote.
 */
function blindWrites(chain: readonly AppliedWrite[]): AppliedWrite[][] {
  const places = new Map(chain.map(({ op }, index) => [op, index]));
  return chain.flatMap(({ base }, index) => {
    const read = base === "origin" ? -1 : (places.get(base) ?? -1);
    return read === index - 1 ? [] : [chain.slice(read + 1, index + 1)];
  });
}

/** Returns the writes that certainly began and ended while their lease was trusted. */
function writtenOnTime(writes: readonly WriteEvent[], spans: readonly Span[]): Set<string> {
  const ends = new Map(spans.map(({ lease, toMs }) => [lease, toMs]));
  const onTime = writes.filter(
    ({ phase, t, lease }) => phase === "accepted" && t <= (ends.get(lease) ?? 0),
  );
  return new Set(onTime.map(({ op }) => op));
}
