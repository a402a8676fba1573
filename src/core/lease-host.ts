import type { Emitter } from "./events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Instant, SteadyClock } from "./ports.ts";
import type { RenewalPhases } from "./renewal-phases.ts";
import type { Renewals } from "./renewals.ts";
import type { StallReport } from "./stall-report.ts";
import type { Grant, OpenStore } from "./store.ts";

/** What a lease needs from the manager that made it. */
export interface LeaseHost {
  readonly clock: SteadyClock;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly ttlMaxMs: number;
  readonly phases: RenewalPhases;
  readonly renewals: Renewals;
  /** Passes the grant on to the next call that waits; returns what the lease is left with then. */
  handOver(lease: HeldLease, grant: Grant): Grant | undefined;
  /** Its resources are given back or lost: whoever of this manager is next may ask. */
  over(grant: Grant): void;
  /** The lease is over: stop its renewals and deadlines. */
  forget(lease: HeldLease): void;
  /** What stood in this process's way since then, a stall that is under way included. */
  stalls(began: Instant): StallReport;
  /** Its validity changed: look again, at `moment`, when to wake up for it. */
  reschedule(lease: HeldLease, moment: Instant): void;
  /** A renewal in the background has come to its end, with or without a new validity. */
  renewed(lease: HeldLease, isRenewed: boolean, moment: Instant): void;
}
