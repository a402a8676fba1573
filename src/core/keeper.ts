import type { LossReason } from "./errors.ts";
import { HeldLease } from "./held-lease.ts";
import type { Instant, Random } from "./ports.ts";
import { Reproof } from "./reproof.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Grant } from "./store.ts";
import { now } from "./validity.ts";

/**
 * Wakes every lease of a manager when its renewal or its end is due. A failed renewal is tried
 * again with spacing while validity lasts; the end is declared by the local clock, never by the
 * arrival of a reply.
 */
export class Keeper {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #reproof: Reproof;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#reproof = new Reproof(scheduler, random);
    scheduler.onClockStep(() => this.#judgeAll());
  }

  /** A lease that is held has its place among the tasks, if only for its end. */
  get leases(): HeldLease[] {
    return this.#scheduler.lasting.filter((task) => task instanceof HeldLease);
  }

  forget(lease: HeldLease): void {
    this.#reproof.forget(lease);
    this.#scheduler.cancel(lease);
  }

  /** Starts a renewal that is due at `moment`, and wakes up again for whatever comes next. */
  reschedule(lease: HeldLease, moment: Instant): void {
    if (!lease.isActive) return;
    const isDue = lease.renewAtMs - lease.earlyMs <= moment.monotonicMs;
    if (isDue && !lease.isRenewing) {
      lease.renew(moment);
      if (!lease.isActive) return;
    }
    const renewAtMs = lease.isRenewing ? Infinity : lease.renewAtMs;
    this.#scheduler.schedule(lease, Math.min(renewAtMs, lease.endDueMs(moment)));
  }

  /** A renewal that failed shows as the lease's state and in its events, and is tried again. */
  renewed(lease: HeldLease, isRenewed: boolean, moment: Instant): void {
    if (!isRenewed) {
      // Spaced by a tenth of the TTL, more or less, so that many leases do not retry as one.
      const spacingMs = (lease.ttlMs / 10) * (0.75 + this.#random.fraction() / 2);
      lease.renewAtMs = moment.monotonicMs + spacingMs;
    }
    this.reschedule(lease, moment);
  }

  /** Ends the leases for whose grant `judge` names a reason. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    for (const lease of this.leases) lease.reconsider(judge);
  }

  /** Turns the leases doubtful for whose grant `judge` names a cause, and has them proven again. */
  doubt(judge: (grant: Grant) => Error | undefined): void {
    for (const lease of this.leases) if (lease.callIntoDoubt(judge)) this.#reproof.start(lease);
  }

  #judgeAll(): void {
    for (const lease of this.leases) {
      const moment = now(this.#scheduler.clock);
      lease.judge(moment);
      // Its end by the wall clock has moved, so the moment to wake up for it has too.
      this.reschedule(lease, moment);
    }
  }
}
