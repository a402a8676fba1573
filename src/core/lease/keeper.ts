import type { LossReason } from "../errors.ts";
import { HeldLease } from "./held-lease.ts";
import type { Instant, Random } from "../ports.ts";
import { Reproof } from "./reproof.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import type { Grant } from "../store.ts";
import { now } from "../time/validity.ts";

/**
 * Wakes each lease of a manager when its renewal or its end is due. Retries failed renewals after a
 * pause while the lease is valid. The local clocks decide the end, never the arrival of a reply.
 */
export class Keeper {
  readonly #scheduler: TimerScheduler;
  readonly #random: Random;
  readonly #reproof: Reproof;

  constructor(scheduler: TimerScheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#reproof = new Reproof(scheduler, random);
    scheduler.onClockStep(() => this.#judgeAll());
  }

  /** Returns the held leases. Each is a scheduled task, at least for its end. */
  get leases(): HeldLease[] {
    return this.#scheduler.lasting.filter((task) => task instanceof HeldLease);
  }

  forget(lease: HeldLease): void {
    this.#reproof.forget(lease);
    this.#scheduler.cancel(lease);
  }

  /** Starts the renewal if it is due at `moment`, and schedules the next renewal or the end. */
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

  /** Called when a renewal has ended. If it failed, schedules a retry. */
  renewed(lease: HeldLease, isRenewed: boolean, moment: Instant): void {
    if (!isRenewed) {
      // About a tenth of the TTL, at random, so that many leases do not retry at once.
      const spacingMs = (lease.ttlMs / 10) * (0.75 + this.#random.fraction() / 2);
      lease.renewAtMs = moment.monotonicMs + spacingMs;
    }
    this.reschedule(lease, moment);
  }

  /** Ends the leases for whose grant `judge` returns a reason. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    for (const lease of this.leases) lease.reconsider(judge);
  }

  /** Turns leases doubtful if `judge` returns a cause for their grant, and proves them again. */
  doubt(judge: (grant: Grant) => Error | undefined): void {
    for (const lease of this.leases) if (lease.callIntoDoubt(judge)) this.#reproof.start(lease);
  }

  #judgeAll(): void {
    for (const lease of this.leases) {
      const moment = now(this.#scheduler.clock);
      lease.judge(moment);
      // The step has moved the end of the lease, and so the time to wake up for it.
      this.reschedule(lease, moment);
    }
  }
}
