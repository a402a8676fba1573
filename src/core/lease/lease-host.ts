import type { Emitter } from "../events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Instant, SteadyClock } from "../ports.ts";
import type { RenewalPhases } from "./renewal-phases.ts";
import type { Renewals } from "./renewals.ts";
import type { StallReport } from "../time/stall-report.ts";
import type { Grant, OpenStore } from "../store.ts";

/** Parts of the manager that its leases use. */
export interface LeaseHost {
  readonly clock: SteadyClock;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly maxTtlMs: number;
  readonly phases: RenewalPhases;
  readonly renewals: Renewals;
  /** Hands the grant over to the next waiting call. Undefined if that is not possible. */
  handOver(lease: HeldLease, grant: Grant): Grant | undefined;
  /** Called when a grant is released or lost: the next waiting call of this manager may attempt. */
  over(grant: Grant): void;
  /** Called when a lease is over: stops its renewals and its deadline. */
  forget(lease: HeldLease): void;
  /** Returns what stalled this process since `began`, including a stall under way. */
  stalls(began: Instant): StallReport;
  /** Called when the validity has changed: schedules the next renewal or the end. */
  reschedule(lease: HeldLease, moment: Instant): void;
  /** Called when a background renewal has ended, with or without a new validity. */
  renewed(lease: HeldLease, isRenewed: boolean, moment: Instant): void;
}
