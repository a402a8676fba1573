import type { LossReason } from "./errors.ts";
import { HeldLease } from "./held-lease.ts";
import type { Random } from "./ports.ts";
import { Reproof } from "./reproof.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Grant } from "./store.ts";

/**
 * Wakes every lease of a manager when its renewal or its end is due. A failed renewal is tried
 * again with spacing while validity lasts; the end is declared by the local clock, never by the
 * arrival of a reply.
 */
export class Keeper {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #renewing = new Set<HeldLease>();
  readonly #reproof: Reproof;

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
    this.#reproof = new Reproof(scheduler, random);
    scheduler.onClockStep(() => this.#judgeAll());
  }

  /** A lease that is held has its place among the tasks, if only for its end. */
  get leases(): HeldLease[] {
    return this.#scheduler.tasks.filter((task) => task instanceof HeldLease);
  }

  forget(lease: HeldLease): void {
    this.#reproof.forget(lease);
    this.#scheduler.cancel(lease);
  }

  /** Starts a renewal that is due, and wakes up again for whatever comes next. */
  reschedule(lease: HeldLease): void {
    if (!lease.isActive) return;
    const nowMs = this.#scheduler.clock.monotonicMs();
    if (lease.renewAtMs - lease.earlyMs <= nowMs && !this.#renewing.has(lease)) {
      void this.#renew(lease);
    }
    const renewAtMs = this.#renewing.has(lease) ? Infinity : lease.renewAtMs;
    this.#scheduler.schedule(lease, Math.min(renewAtMs, lease.endDueMs));
  }

  /** Ends the leases for whose grant `judge` names a reason. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    for (const lease of this.leases) lease.reconsider(judge);
  }

  /** Turns the leases doubtful for whose grant `judge` names a cause, and has them proven again. */
  doubt(judge: (grant: Grant) => Error | undefined): void {
    for (const lease of this.leases) if (lease.callIntoDoubt(judge)) this.#reproof.start(lease);
  }

  /** Never rejects: a failure shows as the lease's state and in its events. */
  async #renew(lease: HeldLease): Promise<void> {
    this.#renewing.add(lease);
    try {
      await lease.extend();
    } catch {
      // Spaced by a tenth of the TTL, more or less, so that many leases do not retry as one.
      const spacingMs = (lease.ttlMs / 10) * (0.75 + this.#random.fraction() / 2);
      lease.renewAtMs = this.#scheduler.clock.monotonicMs() + spacingMs;
    } finally {
      this.#renewing.delete(lease);
      this.reschedule(lease);
    }
  }

  #judgeAll(): void {
    for (const lease of this.leases) {
      lease.judge();
      // Its end by the wall clock has moved, so the moment to wake up for it has too.
      this.reschedule(lease);
    }
  }
}
