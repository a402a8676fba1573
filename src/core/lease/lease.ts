import type { LocalQueues } from "../acquire/local-queue.ts";
import type { Emitter } from "../events.ts";
import type { Random, Stalls, SteadyClock } from "../ports.ts";
import type { OpenStore, ReleaseOutcome } from "../store.ts";
import type { Duration } from "../time/durations.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import type { DoubtResolver } from "./doubt-resolver.ts";
import type { RenewalPhases, Renewals } from "./renewals.ts";

export type LeaseState = "held" | "doubtful" | "lost" | "released";

/** One acquisition of resources. The caller holds them until the lease is released or lost. */
export interface Lease extends AsyncDisposable {
  readonly resources: readonly string[];
  readonly label: string | undefined;
  /**
   * Number that grows with every acquisition of the resource. Reading it throws UnsupportedError if
   * the store does not fence.
   */
  readonly fence: bigint;
  /**
   * Signal that aborts with LeaseLostError at the end of the validity at the latest, even if no
   * node replies. Aborts with ClosedError if the manager is closed.
   */
  readonly signal: AbortSignal;
  readonly state: LeaseState;
  /** Returns the validity that is left by local clocks, rounded down. 0 if the lease is over. */
  remainingMs(): number;
  /**
   * Throws LeaseLostError, LeaseReleasedError or ClosedError if the lease is over. Call this right
   * before a side effect.
   */
  assertHeld(): void;
  /**
   * Checks that the store still has the lock of this lease. If not, the lease is lost and the
   * result is false. Rejects if too few nodes reply; the lease is then doubtful.
   */
  prove(): Promise<boolean>;
  /**
   * Gives this lease a new validity. Never shortens the validity, never re-creates a lost lease.
   * Rejects with LeaseLostError if the lease is over. Rejects with QuorumError if too few nodes
   * reply; the old validity then stands.
   */
  extend(ttl?: Duration): Promise<void>;
  /**
   * Ends the lease. Never rejects for an expired lease. A second call returns the first outcome. If
   * the outcome has `handedOver`, no request was sent. Call `prove()` before the release if you
   * must be sure that the store still had the lock.
   */
  release(): Promise<ReleaseOutcome>;
}

/** Parts of the manager that its leases use. */
export interface LeaseHost {
  readonly clock: SteadyClock;
  readonly random: Random;
  readonly scheduler: TimerScheduler;
  readonly store: OpenStore;
  readonly events: Emitter;
  readonly maxTtlMs: number;
  readonly phases: RenewalPhases;
  readonly renewals: Renewals;
  readonly doubts: DoubtResolver;
  readonly queues: LocalQueues;
  /** Measures stalls of this process. Undefined if stalls cannot be measured. */
  readonly stalls: Stalls | undefined;
}

/** Fields that leases with the same options share. */
export interface LeaseTerms {
  readonly host: LeaseHost;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  /** Time between renewals, in whole milliseconds. Undefined if the lease is not renewed. */
  readonly renewEveryMs: number | undefined;
  readonly label: string | undefined;
  /** Steady time minus monotonic time at the start of the lease, in whole milliseconds. */
  readonly gainedMs: number;
}
