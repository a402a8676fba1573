import type { History } from "../history.ts";

/**
 * Assumptions of mutual exclusion. `clock`: no node's clock is stepped by more than the drift
 * while it keeps a lease. `eviction`: no node drops keys to save memory. `data`: no node forgets a
 * grant. A store with strict admission does not need the last one: such a node may not vote until
 * every lease that it may have forgotten is over.
 *
 * A stopped client breaks none of them: it sees that its lease is over before it goes on.
 */
export type Assumption = "clock" | "eviction" | "data";

export interface BrokenWindow {
  readonly assumption: Assumption;
  readonly fromMs: number;
  /** The longest TTL after the fault was healed, when every lease from before is over. */
  readonly toMs: number;
}

const breaks: Readonly<Record<string, Assumption>> = {
  "clock-step": "clock",
  evict: "eviction",
  "kill-empty": "data",
  "flush-all": "data",
};

/** Allowance for the delay between an action and the moment that the nemesis records for it. */
const marginMs = 100;

export function brokenWindows(history: History): BrokenWindow[] {
  const ends = new Map<number, number>();
  for (const { id, phase, t } of history.faults) if (phase === "end") ends.set(id, t);
  return history.faults.flatMap(({ id, kind, phase, t }) => {
    const assumption = breaks[kind];
    if (assumption === undefined || phase !== "begin") return [];
    const toMs = (ends.get(id) ?? history.endMs) + history.ttlMs * 1.02 + marginMs;
    return [{ assumption, fromMs: t - marginMs, toMs }];
  });
}

/** Returns the assumption that was broken at `atMs`; the gravest if there are several. */
export function brokenAt(windows: readonly BrokenWindow[], atMs: number): Assumption | undefined {
  const found = windows.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs);
  return (["clock", "eviction", "data"] as const).find((assumption) =>
    found.some((window) => window.assumption === assumption),
  );
}

/** Returns the share of the run with none of `assumptions` broken, from 0 to 1. */
export function shareUnbroken(
  history: History,
  windows: readonly BrokenWindow[],
  assumptions: readonly Assumption[],
): number {
  const { startMs, endMs } = history;
  const broken = windows
    .filter(({ assumption }) => assumptions.includes(assumption))
    .toSorted((a, b) => a.fromMs - b.fromMs);
  let coveredMs = 0;
  let reachedMs = startMs;
  for (const { fromMs, toMs } of broken) {
    const from = Math.max(reachedMs, fromMs);
    const to = Math.min(toMs, endMs);
    if (to > from) coveredMs += to - from;
    reachedMs = Math.max(reachedMs, to);
  }
  return 1 - coveredMs / (endMs - startMs);
}
