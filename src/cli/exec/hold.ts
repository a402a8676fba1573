import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../core/lease/lease.ts";

/** How long the lock is kept after the command has ended, counted from the start of the command. */
export interface HoldTerms {
  /** `--once-per`: kept for most of this period, if the command ended with 0. */
  readonly oncePerMs: number | undefined;
  /** `--min-hold`: kept for this time, however the command ended. */
  readonly minHoldMs: number;
}

/**
 * Share of the period for which the lock is kept. Timers start a job seconds early or late: with
 * the whole period, the start after a late one would find the lock held, and would be skipped.
 */
const heldShare = 0.9;

/** Limit for one timer, because the clock of timers stops while the machine sleeps. */
const lookMsMax = 1_000;

/** Returns the time from the start of the command to the end of the hold. */
export function holdMs({ oncePerMs = 0, minHoldMs }: HoldTerms, succeeded: boolean): number {
  return Math.max(minHoldMs, succeeded ? Math.floor(oncePerMs * heldShare) : 0);
}

/**
 * Returns the longest wait with `--once-per`. A call that waits longer could get the lock at the
 * end of the hold, and run the command a second time within the period.
 */
export function onceWaitMaxMs(oncePerMs: number): number {
  return Math.floor(oncePerMs / 2);
}

/** The time after a command in which its lock is kept. A signal ends it. */
export class Hold {
  readonly #ending = new AbortController();

  /** Ends the hold, or prevents it. */
  end(): void {
    this.#ending.abort();
  }

  get hasEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Waits until `untilMs` of `performance.now()`, a signal, or the loss of the lease. */
  async wait(lease: Lease, untilMs: number): Promise<void> {
    const stop = AbortSignal.any([this.#ending.signal, lease.signal]);
    while (!stop.aborted) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return;
      await sleep(Math.min(leftMs, lookMsMax), undefined, { signal: stop }).catch(() => undefined);
    }
  }
}
