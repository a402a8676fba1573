import type { Instant, Stalls, SteadyClock } from "../ports.ts";

/** Stalls of this process while it held a lease. */
export interface StallReport {
  /** Longest stall of the event loop since the lease began, as far as it was measured. */
  readonly stallMs: number;
  /** Longest garbage collection since the lease began. 0 if below 10 ms or not measured. */
  readonly gcMs: number;
  /**
   * Time for which the machine was suspended since the lease began. 0 if below 1 s or not measured.
   */
  readonly suspendedMs: number;
  /** Text that explains the stalls. Undefined if nothing stalled the process. */
  readonly why: string | undefined;
}

interface Sources {
  readonly clock: SteadyClock;
  readonly stalls: Stalls | undefined;
  /** Current delay of the scheduler's timer: the length of a stall that has not ended yet. */
  readonly overdueMs: number;
}

/** Least stall and least jump of the wall clock that `why` mentions. */
const leastStallMs = 100;
const leastSuspendMs = 1_000;

export function stallReport({ clock, stalls, overdueMs }: Sources, began: Instant): StallReport {
  const sinceMs = began.monotonicMs;
  const stallMs = Math.round(Math.max(overdueMs, stalls?.maxMs(sinceMs) ?? 0));
  const gcMs = Math.round(stalls?.maxGcMs?.(sinceMs) ?? 0);
  const sleptMs = Math.round(stalls?.suspendedMs?.(sinceMs) ?? 0);
  const suspendedMs = sleptMs >= leastSuspendMs ? sleptMs : 0;
  const { monotonicMs, steadyMs } = clock.now();
  const heldMs = monotonicMs - sinceMs;
  // Allowance for slewing: a wall clock that is corrected slowly gains a little all the time.
  const slewMs = heldMs / 1_000;
  const wallAheadMs = steadyMs - began.steadyMs - heldMs - slewMs;
  return { stallMs, gcMs, suspendedMs, why: explain(stallMs, gcMs, suspendedMs, wallAheadMs) };
}

function explain(
  stallMs: number,
  gcMs: number,
  suspendedMs: number,
  wallAheadMs: number,
): string | undefined {
  const causes: string[] = [];
  if (suspendedMs > 0) {
    causes.push(`the machine was suspended for about ${inSeconds(suspendedMs)}`);
  } else if (wallAheadMs >= leastStallMs) {
    causes.push(
      `the wall clock ran ahead by ${inSeconds(wallAheadMs)}: it was set, or the machine slept`,
    );
  }
  if (stallMs >= leastStallMs || gcMs >= leastStallMs) {
    const isGc = gcMs * 2 >= stallMs;
    causes.push(
      isGc
        ? `garbage collection stopped the process for ${gcMs} ms`
        : `the event loop was blocked, or the process stopped, for ${stallMs} ms`,
    );
  }
  return causes.length === 0 ? undefined : causes.join("; ");
}

function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
