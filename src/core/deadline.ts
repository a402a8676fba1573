import type { LossReason } from "./errors.ts";
import type { LeaseTerms } from "./lease.ts";
import type { Instant } from "./ports.ts";
import type { Task } from "./scheduler.ts";
import { clockStepMs } from "./validity.ts";

/** Below this it is over: whole milliseconds are all that a caller can do anything with. */
const leastLeftMs = 1;
/** Sums of fractional milliseconds do not come out even. */
const roundingMs = 0.01;

/** A renewal may come this part of the TTL sooner: 100 ms for 10 s. */
const earlyShare = 100;
/** Held up by more than this it was not alone. */
const lateMsMax = 200;
/** The renewal time of a lease that is not renewed. */
const never = -1;

/**
 * When a lease is to be renewed, and when it ends: by whichever time says so first, and never
 * after `maxHold`. Its times are whole milliseconds, rounded down: small whole numbers need no
 * memory of their own, and there may be very many leases.
 */
export class Deadline implements Omit<Task, "run"> {
  /** For the scheduler. */ dueMs = 0;
  /** For the scheduler. */ heapIndex = -1;
  /** @internal Shared by leases of the same options. */
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

  /** @internal When to renew next; Infinity for a lease that is not renewed. */
  get renewAtMs(): number {
    return this.#renewAtMs === never ? Infinity : this.#renewAtMs;
  }

  set renewAtMs(ms: number) {
    this.#renewAtMs = Math.floor(ms);
  }

  /** Renewals and deadlines never keep the process running by themselves. */
  get keepAlive(): boolean {
    return false;
  }

  /** @internal Renewals due at about the same time go together; an end is an end. */
  get earlyMs(): number {
    return this.dueMs < this.renewAtMs ? 0 : earlyMsOf(this.terms);
  }

  /** @internal When validity began to count. */
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

  /** @internal So little is left that a timer set for the end itself might miss it. */
  isDue(moment: Instant): boolean {
    return this.leftMs(moment) <= dueLeftMs(this.terms);
  }

  /** @internal When `isDue` turns true, by the monotonic clock, as it looks at `moment`. */
  endDueMs(moment: Instant): number {
    const endMs = moment.monotonicMs + this.leftMs(moment);
    return Math.ceil(endMs - roundingMs) - leastLeftMs - this.terms.host.clock.timerSlackMs;
  }

  /** @internal Moves the end, never nearer, and the next renewal with it. */
  prolong(started: Instant, validityMs: number): void {
    const untilMs = Math.max(this.#untilMs, Math.floor(started.monotonicMs + validityMs));
    this.#untilMs = Math.min(untilMs, this.#startedMs + this.terms.maxHoldMs);
    const steadyUntilMs = Math.floor(started.steadyMs + validityMs);
    this.#steadyUntilMs = Math.max(this.#steadyUntilMs, steadyUntilMs);
    const { renewEveryMs } = this.terms;
    if (renewEveryMs === undefined) return;
    const lateMs = started.monotonicMs - this.#renewAtMs;
    const isInRhythm = lateMs <= lateMsMax && lateMs >= -earlyMsOf(this.terms);
    // Else, after a stall or an extension by hand, many leases would go on in step.
    const afterMs = isInRhythm ? renewEveryMs : phased(renewEveryMs, this.terms);
    this.renewAtMs = started.monotonicMs + afterMs;
  }

  /** @internal Which clock or bound ended it; `otherwise` where its time simply ran out. */
  whyOver(otherwise: LossReason): LossReason {
    const { monotonicMs, steadyMs } = this.terms.host.clock.now();
    const leftMs = this.#untilMs - monotonicMs;
    const steadyLeftMs = this.#steadyUntilMs - steadyMs;
    // Where both clocks agree but for a hair, it is the time that ran out.
    if (leftMs > dueLeftMs(this.terms) && leftMs - steadyLeftMs >= clockStepMs) return "clock";
    return this.#untilMs >= this.#startedMs + this.terms.maxHoldMs ? "maxHold" : otherwise;
  }
}

// Functions, because private methods cost each lease a place.
function dueLeftMs({ host }: LeaseTerms): number {
  return leastLeftMs + host.clock.timerSlackMs + roundingMs;
}

function earlyMsOf({ ttlMs, renewEveryMs = 0 }: LeaseTerms): number {
  // Of a short interval only a part: else the next renewal would be due with every answer.
  return Math.min(ttlMs / earlyShare, renewEveryMs / 4);
}

function phased(renewEveryMs: number, { host }: LeaseTerms): number {
  return Math.floor(renewEveryMs * host.phases.next());
}
