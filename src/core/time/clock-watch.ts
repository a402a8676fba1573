/**
 * Watches one server's clock through the time in its replies.
 *
 * Problem: locks expire by the server's clock. If that clock is set forward, a lock expires before
 * the lease ends by our clock, and another owner may acquire it.
 *
 * Idea: each reply gives the offset between the server's clock and ours, with an error of half the
 * round trip. A change of the offset that neither errors nor drift explain is a step. A step counts
 * only if both of our clocks (monotonic and steady) show it, because a suspend of our machine
 * changes only one of them. Votes given before a step forward do not count any more. A step back
 * does no harm: locks only live longer.
 *
 * Limits: a step is noticed at the next reply. That shortens the dangerous time, but cannot remove
 * it. Steps within the drift allowance are not noticed.
 */

import type { Instant, SteadyClock } from "../ports.ts";

/** Part of a reply: the process that replied (run id), and the time of its clock. */
export interface Stamp {
  readonly runId: string;
  readonly serverMs: number;
}

interface Sample {
  readonly runId: string;
  readonly atMs: number;
  /** Server time minus our time, by each of our clocks; the error is half the round trip. */
  readonly monotonicOffsetMs: number;
  readonly steadyOffsetMs: number;
  readonly errorMs: number;
}

/** Greatest change of a server's clock against ours that does not count as a step. */
export interface DriftAllowance {
  readonly factor: number;
  readonly fixedMs: number;
}

/** Smallest change of an offset that counts. Smaller changes come from round trips and drift. */
export const newsMs = 250;
/** Pause between two comparisons of one offset: a wall clock may be set at any time. */
const compareEveryMs = 1_000;

/** Clock of one server, according to the time in its replies. */
export class ClockWatch {
  readonly #clock: SteadyClock;
  readonly #allowance: DriftAllowance;
  #reference: Sample | undefined;
  /** Server time minus our monotonic time, by the last reply; undefined before the first. */
  offsetMs: number | undefined = undefined;
  /** Greatest error of the offset: half the round trip of the last reply. */
  errorMs: number = Infinity;
  /** Monotonic time of the last reply. */
  atMs: number = -Infinity;
  /**
   * True if the clock should now be compared with those of other servers: the offset has changed,
   * or the last comparison was a while ago.
   */
  hasNews = false;
  #comparedOffsetMs = NaN;
  #comparedAtMs = -Infinity;

  constructor(clock: SteadyClock, allowance: DriftAllowance) {
    this.#clock = clock;
    this.#allowance = allowance;
  }

  /** Returns the server's time at a monotonic time; undefined before the first reply. */
  serverMsAt(monotonicMs: number): number | undefined {
    return this.offsetMs === undefined ? undefined : monotonicMs + this.offsetMs;
  }

  /** Evaluates one reply. Returns how far the clock stepped, or 0. */
  observe(stamp: Stamp, sent: Instant): number {
    const { runId, serverMs } = stamp;
    const { monotonicMs: atMs, steadyMs } = this.#clock.now();
    const monotonicOffsetMs = serverMs - (sent.monotonicMs + atMs) / 2;
    this.offsetMs = monotonicOffsetMs;
    const steadyOffsetMs = serverMs - (sent.steadyMs + steadyMs) / 2;
    // Adds 1 ms, because our wall clock counts whole milliseconds.
    const errorMs = (atMs - sent.monotonicMs) / 2 + 1;
    this.errorMs = errorMs;
    this.atMs = atMs;
    const hasMoved = Math.abs(monotonicOffsetMs - this.#comparedOffsetMs) > newsMs;
    this.hasNews = hasMoved || atMs - this.#comparedAtMs >= compareEveryMs;
    if (this.hasNews) {
      this.#comparedOffsetMs = monotonicOffsetMs;
      this.#comparedAtMs = atMs;
    }
    const reference = this.#reference;
    if (reference === undefined || reference.runId !== runId) {
      this.#reference = { runId, atMs, monotonicOffsetMs, steadyOffsetMs, errorMs };
      return 0;
    }
    const driftMs = this.#allowance.factor * (atMs - reference.atMs);
    const allowedMs = reference.errorMs + errorMs + driftMs + this.#allowance.fixedMs;
    const stepMs = monotonicOffsetMs - reference.monotonicOffsetMs;
    const steadyStepMs = steadyOffsetMs - reference.steadyOffsetMs;
    // A suspend of our machine changes only one of our clocks, and is no step of the server's
    // clock.
    const stepped = Math.abs(stepMs) > allowedMs && Math.abs(steadyStepMs) > allowedMs;
    if (stepped || errorMs <= reference.errorMs + driftMs) {
      this.#reference = { runId, atMs, monotonicOffsetMs, steadyOffsetMs, errorMs };
    }
    return stepped ? stepMs : 0;
  }
}
