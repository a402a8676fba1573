import type { LossReason } from "../errors.ts";
import type { LeaseTerms } from "./lease.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
import { clockStepMs } from "../time/validity.ts";

/** Least validity of a lease that is not over: callers see whole milliseconds. */
const leastLeftMs = 1;
/** Tolerance for rounding errors in sums of fractional milliseconds. */
const roundingMs = 0.01;

/** Divisor of the TTL for how early a renewal may run: 100 ms for a TTL of 10 s. */
const earlyShare = 100;
/** Longest delay of a renewal that keeps its rhythm. A longer one delayed other leases, too. */
const lateMsMax = 200;
/** Value of `#renewAtMs` for a lease that is not renewed. */
const never = -1;

/**
 * Time of a lease's next renewal, and of its end. The lease is over when either time of an
 * `Instant` passes its end, and at `maxHold` at the latest.
 *
 * perf (held): the times are whole milliseconds, rounded down, because V8 allocates no memory for
 * small integers.
 */
export class Deadline implements Omit<Task, "run"> {
  /** Written by the scheduler. */ dueMs = 0;
  /** Written by the scheduler. */ heapIndex = -1;
  /** @internal Shared by leases with the same options. */
  readonly terms: LeaseTerms;
  readonly #startedMs: number;
  readonly #startedSteadyMs: number;
  #untilMs: number;
  #steadyUntilMs: number;
  #renewAtMs: number;

  constructor(terms: LeaseTerms, started: Instant, validityMs: number) {
    this.terms = terms;
    this.#startedMs = Math.floor(started.monotonicMs);
    this.#startedSteadyMs = Math.floor(started.steadyMs);
    const heldMs = Math.min(validityMs, terms.maxHoldMs);
    this.#untilMs = Math.floor(started.monotonicMs + heldMs);
    this.#steadyUntilMs = Math.floor(started.steadyMs + validityMs);
    const { renewEveryMs } = terms;
    this.#renewAtMs =
      renewEveryMs === undefined ? never : this.#startedMs + phased(renewEveryMs, terms);
  }

  /** @internal */
  get ttlMs(): number {
    return this.terms.ttlMs;
  }

  get label(): string | undefined {
    return this.terms.label;
  }

  /** @internal Time of the next renewal; Infinity for a lease that is not renewed. */
  get renewAtMs(): number {
    return this.#renewAtMs === never ? Infinity : this.#renewAtMs;
  }

  set renewAtMs(ms: number) {
    this.#renewAtMs = Math.floor(ms);
  }

  /** Returns false: renewals and ends of leases do not keep the process running. */
  get keepAlive(): boolean {
    return false;
  }

  /** @internal How early the task may run. Renewals share a round; the end is never early. */
  get earlyMs(): number {
    return this.dueMs < this.renewAtMs ? 0 : earlyMsOf(this.terms);
  }

  /** @internal Monotonic time from which the first validity counts. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /** @internal */
  get started(): Instant {
    return { monotonicMs: this.#startedMs, steadyMs: this.#startedSteadyMs };
  }

  /** @internal */
  leftMs({ monotonicMs, steadyMs }: Instant): number {
    return Math.min(this.#untilMs - monotonicMs, this.#steadyUntilMs - steadyMs);
  }

  /** @internal */
  isOver(moment: Instant): boolean {
    return this.leftMs(moment) < leastLeftMs;
  }

  /** @internal True if so little is left that a timer for the exact end could fire too late. */
  isDue(moment: Instant): boolean {
    return this.leftMs(moment) <= dueLeftMs(this.terms);
  }

  /** @internal Monotonic time at which `isDue` turns true, as known at `moment`. */
  endDueMs(moment: Instant): number {
    const endMs = moment.monotonicMs + this.leftMs(moment);
    return Math.ceil(endMs - roundingMs) - leastLeftMs - this.terms.host.clock.timerSlackMs;
  }

  /** @internal Moves the end, never to an earlier time, and sets the next renewal. */
  prolong(started: Instant, validityMs: number): void {
    const untilMs = Math.max(this.#untilMs, Math.floor(started.monotonicMs + validityMs));
    this.#untilMs = Math.min(untilMs, this.#startedMs + this.terms.maxHoldMs);
    const steadyUntilMs = Math.floor(started.steadyMs + validityMs);
    this.#steadyUntilMs = Math.max(this.#steadyUntilMs, steadyUntilMs);
    const { renewEveryMs } = this.terms;
    if (renewEveryMs === undefined) return;
    const lateMs = started.monotonicMs - this.#renewAtMs;
    const isInRhythm = lateMs <= lateMsMax && lateMs >= -earlyMsOf(this.terms);
    // After a stall or a manual extension, a new phase keeps many leases from renewing in step.
    const afterMs = isInRhythm ? renewEveryMs : phased(renewEveryMs, this.terms);
    this.renewAtMs = started.monotonicMs + afterMs;
  }

  /** @internal Returns the clock or limit that ended it; `otherwise` if its validity ran out. */
  whyOver(otherwise: LossReason): LossReason {
    const { monotonicMs, steadyMs } = this.terms.host.clock.now();
    const leftMs = this.#untilMs - monotonicMs;
    const steadyLeftMs = this.#steadyUntilMs - steadyMs;
    // A step only if time is left by the monotonic clock and the difference is no slewing.
    if (leftMs > dueLeftMs(this.terms) && leftMs - steadyLeftMs >= clockStepMs) return "clock";
    return this.#untilMs >= this.#startedMs + this.terms.maxHoldMs ? "max-hold" : otherwise;
  }
}

// perf (held): functions, because private methods would add a field to each lease.
function dueLeftMs({ host }: LeaseTerms): number {
  return leastLeftMs + host.clock.timerSlackMs + roundingMs;
}

function earlyMsOf({ ttlMs, renewEveryMs = 0 }: LeaseTerms): number {
  // At most a quarter of a short interval: else the next renewal would be due with each reply.
  return Math.min(ttlMs / earlyShare, renewEveryMs / 4);
}

function phased(renewEveryMs: number, { host }: LeaseTerms): number {
  return Math.floor(renewEveryMs * host.phases.next());
}
