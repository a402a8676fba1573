import type { LossReason } from "../errors.ts";
import type { HeldLease } from "./held-lease.ts";
import type { LeaseTerms } from "./lease.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
import { clockStepMs } from "../time/instant.ts";
import { stallReport, type StallReport } from "../time/stall-report.ts";

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
 * Time of a lease's next renewal, and of its end: a task of the scheduler. The lease is over when
 * either time of an `Instant` passes its end, and at `maxHold` at the latest.
 *
 * perf (held): the times are whole milliseconds, rounded down, because V8 allocates no memory for
 * small integers. Methods are `private` and not #private, which would add a field to each lease.
 */
export class Deadline implements Task {
  /** Written by the scheduler. */ dueMs = 0;
  /** Written by the scheduler. */ heapIndex = -1;
  readonly lease: HeldLease;
  /** Shared by leases with the same options. */
  readonly terms: LeaseTerms;
  readonly #startedMs: number;
  #untilMs: number;
  #steadyUntilMs: number;
  #renewAtMs: number;

  constructor(lease: HeldLease, terms: LeaseTerms, started: Instant, validityMs: number) {
    this.lease = lease;
    this.terms = terms;
    this.#startedMs = Math.floor(started.monotonicMs);
    const heldMs = Math.min(validityMs, terms.maxHoldMs);
    this.#untilMs = Math.floor(started.monotonicMs + heldMs);
    this.#steadyUntilMs = Math.floor(started.steadyMs + validityMs);
    const { renewEveryMs } = terms;
    this.#renewAtMs =
      renewEveryMs === undefined ? never : this.#startedMs + phased(renewEveryMs, terms);
  }

  /** Time of the next renewal; Infinity for a lease that is not renewed. */
  private get nextRenewalMs(): number {
    return this.#renewAtMs === never ? Infinity : this.#renewAtMs;
  }

  /** Returns false: renewals and ends of leases do not keep the process running. */
  get keepAlive(): boolean {
    return false;
  }

  /** How early the task may run. Renewals share a round; the end is never early. */
  get earlyMs(): number {
    return this.dueMs < this.nextRenewalMs ? 0 : earlyMsOf(this.terms);
  }

  /** Monotonic time from which the first validity counts. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /** Returns what stalled this process since the lease began, with a stall under way. */
  stalls(): StallReport {
    const { gainedMs, host } = this.terms;
    const { clock, scheduler, stalls } = host;
    const began = { monotonicMs: this.#startedMs, steadyMs: this.#startedMs + gainedMs };
    return stallReport({ clock, stalls, overdueMs: scheduler.overdueMs }, began);
  }

  leftMs({ monotonicMs, steadyMs }: Instant): number {
    return Math.min(this.#untilMs - monotonicMs, this.#steadyUntilMs - steadyMs);
  }

  isOver(moment: Instant): boolean {
    return this.leftMs(moment) < leastLeftMs;
  }

  isRenewalDue({ monotonicMs }: Instant): boolean {
    return this.nextRenewalMs - this.earlyMs <= monotonicMs;
  }

  /** Called when the renewal is due, or when the end is so near that a timer could miss it. */
  run(moment: Instant): void {
    if (!this.lease.isActive) return;
    if (this.leftMs(moment) <= dueLeftMs(this.terms)) this.lease.lose();
    else this.lease.schedule(moment);
  }

  /** Returns when the end is so near, as known at `moment`. */
  private endDueMs(moment: Instant): number {
    const endMs = moment.monotonicMs + this.leftMs(moment);
    return Math.ceil(endMs - roundingMs) - leastLeftMs - this.terms.host.clock.timerSlackMs;
  }

  /** Schedules the end, or the next renewal if that comes first and none is under way. */
  schedule(isRenewing: boolean, moment: Instant): void {
    const renewAtMs = isRenewing ? Infinity : this.nextRenewalMs;
    const { scheduler } = this.terms.host;
    scheduler.schedule(this, Math.min(renewAtMs, this.endDueMs(moment)));
  }

  cancel(): void {
    this.terms.host.scheduler.cancel(this);
  }

  /** Sets the next renewal after a failed one: about a tenth of the TTL later, at random. */
  retryRenewal({ monotonicMs }: Instant): void {
    this.#renewAtMs = Math.floor(monotonicMs + spacingMs(this.terms));
  }

  /** Moves the end, never to an earlier time, and sets the next renewal. */
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
    this.#renewAtMs = Math.floor(started.monotonicMs + afterMs);
  }

  /** Returns the clock or limit that ended it, or that its validity ran out. */
  whyOver(isDoubtful: boolean): LossReason {
    const { monotonicMs, steadyMs } = this.terms.host.clock.now();
    const leftMs = this.#untilMs - monotonicMs;
    const steadyLeftMs = this.#steadyUntilMs - steadyMs;
    // A step only if time is left by the monotonic clock and the difference is no slewing.
    if (leftMs > dueLeftMs(this.terms) && leftMs - steadyLeftMs >= clockStepMs) return "clock";
    if (this.#untilMs >= this.#startedMs + this.terms.maxHoldMs) return "max-hold";
    return isDoubtful ? "unreachable" : "expired";
  }
}

/** Returns a pause of about a tenth of the TTL, at random, so that leases do not act in step. */
export function spacingMs({ ttlMs, host }: LeaseTerms): number {
  return (ttlMs / 10) * (0.75 + host.random.fraction() / 2);
}

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
