import type { LossReason } from "../errors.ts";
import type { HeldLease } from "./held-lease.ts";
import type { LeaseTerms } from "./lease.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
import { clockStepMs } from "../time/instant.ts";
import { stallReport, type StallReport } from "../time/stall-report.ts";

/**
 * Least remaining validity. A lease with less is over, because callers receive whole milliseconds.
 */
const leastLeftMs = 1;
/** Tolerance for rounding errors in sums of fractional milliseconds. */
const roundingMs = 0.01;

/** A renewal may run early by the TTL divided by this number: by 100 ms for a TTL of 10 s. */
const earlyShare = 100;
/**
 * Limit for the delay of a renewal that keeps the rhythm of its lease. A longer delay comes from a
 * stall, which probably delayed the renewals of other leases as well (see `prolong`).
 */
const lateMsMax = 200;
/** Value of `#renewAtMs` for a lease that is not renewed. */
const never = -1;

/**
 * Task of the scheduler for one lease: its next renewal, and its end. The lease is over when the
 * monotonic or the steady time passes its end, and after `maxHold` at the latest.
 *
 * perf (held): the times are whole milliseconds, rounded down, because V8 allocates no memory for
 * small integers. Methods are `private` and not #private, which would add a field to each lease.
 */
export class Deadline implements Task {
  /** Written by the scheduler. */ dueMs = 0;
  /** Written by the scheduler. */ heapIndex = -1;
  readonly lease: HeldLease;
  /** Options of the lease. Leases with the same options share this object. */
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

  /**
   * Longest time by which the task may run early: 0 for the end of a lease. A renewal may run
   * early, so that it is sent together with others.
   */
  get earlyMs(): number {
    return this.dueMs < this.nextRenewalMs ? 0 : earlyMsOf(this.terms);
  }

  /** Monotonic time from which the first validity counts. */
  get startedMs(): number {
    return this.#startedMs;
  }

  /** Returns the stalls of this process since the lease began, including a stall under way. */
  stalls(): StallReport {
    const { gainedMs, host } = this.terms;
    const { clock, scheduler, stalls } = host;
    const began = { monotonicMs: this.#startedMs, steadyMs: this.#startedMs + gainedMs };
    return stallReport({ clock, stalls, overdueMs: scheduler.overdueMs }, began);
  }

  leftMs({ monotonicMs, steadyMs }: Instant): number {
    return Math.min(this.#untilMs - monotonicMs, this.#steadyUntilMs - steadyMs);
  }

  /**
   * Returns the validity that a hand-over can pass on: none if `maxHold` has brought the end
   * forward, because that limits this lease only.
   */
  leftForNextMs(moment: Instant): number {
    return this.isCutByMaxHold ? 0 : this.leftMs(moment);
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

  /** Returns the time at which the end is so near that a timer could miss it. `moment` is now. */
  private endDueMs(moment: Instant): number {
    const endMs = moment.monotonicMs + this.leftMs(moment);
    return Math.ceil(endMs - roundingMs) - leastLeftMs - this.terms.host.clock.timerSlackMs;
  }

  /**
   * Schedules this task for the end, or for the next renewal if that comes first. While a renewal
   * is under way, only the end is scheduled.
   */
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
    // After a stall or a manual extension many leases would renew at the same moment, again and
    // again. So each of them waits for another share of the interval (its phase) once.
    const afterMs = isInRhythm ? renewEveryMs : phased(renewEveryMs, this.terms);
    this.#renewAtMs = Math.floor(started.monotonicMs + afterMs);
  }

  /** True if `maxHold` ends the lease before its validity does, or at the same time. */
  private get isCutByMaxHold(): boolean {
    return this.#untilMs >= this.#startedMs + this.terms.maxHoldMs;
  }

  /** Returns the reason for the end of a lease that is over. */
  whyOver(isDoubtful: boolean): LossReason {
    const { monotonicMs, steadyMs } = this.terms.host.clock.now();
    const leftMs = this.#untilMs - monotonicMs;
    const steadyLeftMs = this.#steadyUntilMs - steadyMs;
    // The wall clock has stepped only if the monotonic clock still has time left, and if slewing
    // cannot explain the difference between the two.
    if (leftMs > dueLeftMs(this.terms) && leftMs - steadyLeftMs >= clockStepMs) return "clock";
    if (this.isCutByMaxHold) return "max-hold";
    return isDoubtful ? "unreachable" : "expired";
  }
}

/** Returns a pause of about a tenth of the TTL, at random, so that not all leases send at once. */
export function spacingMs({ ttlMs, host }: LeaseTerms): number {
  return (ttlMs / 10) * (0.75 + host.random.fraction() / 2);
}

function dueLeftMs({ host }: LeaseTerms): number {
  return leastLeftMs + host.clock.timerSlackMs + roundingMs;
}

function earlyMsOf({ ttlMs, renewEveryMs = 0 }: LeaseTerms): number {
  // Returns at most a quarter of the interval. If a short interval allowed more, the next renewal
  // would be due as soon as the reply arrives.
  return Math.min(ttlMs / earlyShare, renewEveryMs / 4);
}

function phased(renewEveryMs: number, { host }: LeaseTerms): number {
  return Math.floor(renewEveryMs * host.phases.next());
}
