import type { MissedReason } from "./schedule-events.ts";
import type { Ticks } from "./ticks.ts";

/**
 * The number that a ledger keeps is `tick * 16 + attempt`: which tick was begun last, and how
 * often. The attempt 15 means that the tick is over. So one number that only grows says what has
 * begun.
 */
const attempts = 16;
const over = attempts - 1;

/** Limit for the attempts of one tick. */
export const triesMax: number = over - 1;

export function begunValue(tickMs: number, attempt: number): number {
  return tickMs * attempts + attempt;
}

export function overValue(tickMs: number): number {
  return tickMs * attempts + over;
}

/** One attempt of one tick. */
export interface Due {
  readonly tickMs: number;
  readonly attempt: number;
}

export interface MissedTick {
  readonly tickMs: number;
  readonly reason: MissedReason;
}

export interface Plan {
  readonly due: readonly Due[];
  readonly missed: readonly MissedTick[];
}

export interface Policy {
  readonly missed: "latest" | "all" | "skip";
  readonly tries: number;
  readonly graceMs: number;
  readonly withinMs: number;
}

/** Limit for the missed ticks that are run later. */
const dueMax = 100;

/**
 * Returns what to run now, oldest first, and which ticks are not run any more. `last` is the number
 * in the ledger.
 */
export function planOf(last: number, nowMs: number, ticks: Ticks, policy: Policy): Plan {
  const lastMs = Math.floor(last / attempts);
  const attempt = last % attempts;
  const due: Due[] = [];
  const missed: MissedTick[] = [];
  const oldMs = nowMs - policy.withinMs;
  if (attempt !== over) {
    const again = attempt < policy.tries && lastMs > oldMs;
    if (again) due.push({ tickMs: lastMs, attempt: attempt + 1 });
    else missed.push({ tickMs: lastMs, reason: "crashed" });
  }
  const [old] = ticks.between(lastMs, oldMs, 1);
  if (old !== undefined) missed.push({ tickMs: old, reason: "too-old" });
  const open = ticks.between(Math.max(lastMs, oldMs), nowMs, dueMax);
  const latest = open.at(-1);
  for (const tickMs of open) {
    if (policy.missed === "all" || (tickMs === latest && isWanted(tickMs, nowMs, policy))) {
      due.push({ tickMs, attempt: 1 });
    } else {
      missed.push({ tickMs, reason: tickMs === latest ? "late" : "passed-over" });
    }
  }
  return { due, missed };
}

function isWanted(tickMs: number, nowMs: number, { missed, graceMs }: Policy): boolean {
  return missed !== "skip" || nowMs - tickMs < graceMs;
}
