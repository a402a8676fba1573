import type { Acquired } from "../acquire/acquisition.ts";
import { Deadline } from "./deadline.ts";
import type { LossReason } from "../errors.ts";
import { HeldLease } from "./held-lease.ts";
import type { LeaseHost, LeaseTerms } from "./lease.ts";
import type { ResolvedOptions } from "../options.ts";
import type { Instant } from "../ports.ts";
import type { Holder } from "../report/holder.ts";
import type { Grant } from "../store.ts";

/** Creates the leases of a manager, and finds those that are held. */
export class Keeper {
  readonly #host: LeaseHost;
  #terms: LeaseTerms | undefined;

  constructor(host: LeaseHost) {
    this.#host = host;
    host.scheduler.onClockStep(() => this.#judgeAll());
  }

  /** Creates the lease of a grant, and schedules its first renewal or its end. */
  hold(
    { grant, started, validityMs }: Acquired,
    options: ResolvedOptions,
    now: Instant,
  ): HeldLease {
    const lease = new HeldLease(this.#termsOf(options, started), grant, started, validityMs);
    lease.schedule(now);
    return lease;
  }

  /**
   * Returns the leases that are held or whose release is under way. Each of them has a task in the
   * scheduler, at least for its end.
   */
  get leases(): HeldLease[] {
    return this.#host.scheduler.lasting.flatMap((task) => {
      return task instanceof Deadline ? [task.lease] : [];
    });
  }

  /**
   * Returns the holder. If it is this manager, adds the start of the lease that holds the resource.
   */
  withSince(resources: readonly string[], holder: Holder | undefined): Holder | undefined {
    if (holder?.self !== true) return holder;
    const lease = this.leases.find((held) => {
      return held.resources.some((resource) => resources.includes(resource)) && isHeld(held);
    });
    return lease === undefined ? holder : { ...holder, sinceMs: wallStartMs(lease) };
  }

  /** Ends leases as lost: those for whose grant `judge`, a check by the store, returns a reason. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    for (const lease of this.leases) lease.reconsider(judge);
  }

  /**
   * Makes leases doubtful: those for whose grant `judge`, a check by the store, returns a cause.
   * Then proves them.
   */
  doubt(judge: (grant: Grant) => Error | undefined): void {
    for (const lease of this.leases) lease.callIntoDoubt(judge);
  }

  #judgeAll(): void {
    for (const lease of this.leases) {
      const moment = this.#host.clock.now();
      lease.judge(moment);
      // The clock step has moved the end of the lease, so its task must be scheduled again.
      lease.schedule(moment);
    }
  }

  /**
   * Returns the terms of a lease. perf (held): consecutive leases with the same options get the
   * same object.
   */
  #termsOf({ ttlMs, maxHoldMs, label, renew }: ResolvedOptions, started: Instant): LeaseTerms {
    const terms = this.#terms;
    const gainedMs = Math.round(started.steadyMs - started.monotonicMs);
    const everyMs = renew === true ? Math.floor(ttlMs / 3) : renew === false ? undefined : renew;
    const isSame =
      terms?.ttlMs === ttlMs &&
      terms.maxHoldMs === maxHoldMs &&
      terms.renewEveryMs === everyMs &&
      terms.label === label &&
      terms.gainedMs === gainedMs;
    if (isSame) return terms;
    this.#terms = { host: this.#host, ttlMs, maxHoldMs, renewEveryMs: everyMs, label, gainedMs };
    return this.#terms;
  }
}

/** Returns the start of a lease by the wall clock, in milliseconds since 1970. */
export function wallStartMs({ terms, startedMs }: HeldLease): number {
  const { clock } = terms.host;
  return Math.round(clock.wallMs() - (clock.monotonicMs() - startedMs));
}

/** True if the lease is held or doubtful. The read of `state` checks the clocks. */
export function isHeld({ state }: HeldLease): boolean {
  return state === "held" || state === "doubtful";
}
