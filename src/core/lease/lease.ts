import type { LocalQueues } from "../acquire/local-queue.ts";
import type { Emitter } from "../events.ts";
import type { Random, Stalls, SteadyClock } from "../ports.ts";
import type { OpenStore, ReleaseOutcome } from "../store.ts";
import type { Duration } from "../time/durations.ts";
import type { TimerScheduler } from "../time/scheduler.ts";
import type { DoubtResolver } from "./doubt-resolver.ts";
import type { RenewalPhases, Renewals } from "./renewals.ts";

export type LeaseState = "held" | "doubtful" | "lost" | "released";

/** Proof of holding resources, until it is released or lost. */
export interface Lease extends AsyncDisposable {
  readonly resources: readonly string[];
  readonly label: string | undefined;
  /** Grows with every acquisition of the resource. Throws UnsupportedError if not fenced. */
  readonly fence: bigint;
  /**
   * Aborts with LeaseLostError at the end of the validity at the latest, whatever the store does.
   * Aborts with ClosedError if the manager is closed.
   */
  readonly signal: AbortSignal;
  readonly state: LeaseState;
  /** Returns what is left of the validity by local clocks, rounded down. 0 once it is over. */
  remainingMs(): number;
  /** Throws LeaseLostError or LeaseReleasedError if over. Call it right before a side effect. */
  assertHeld(): void;
  /**
   * Checks in the store that the lease is still ours. If not, the lease is lost and the result is
   * false. Rejects if too few nodes reply: then the lease is doubtful.
   */
  prove(): Promise<boolean>;
  /**
   * Gives the same lease a new validity. Never shortens it, never re-creates a lost lease. Rejects
   * with LeaseLostError, or with QuorumError: then the old validity still stands.
   */
  extend(ttl?: Duration): Promise<void>;
  /**
   * Ends the lease. Never rejects for an expired lease; a second call returns the first outcome.
   * With `handedOver` in it no request was sent: call `prove()` before, if it matters.
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
  /** Undefined if stalls of this process cannot be measured. */
  readonly stalls: Stalls | undefined;
}

/** Fields that leases with the same options share. */
export interface LeaseTerms {
  readonly host: LeaseHost;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  /** Time between renewals, in whole milliseconds; undefined for none. */
  readonly renewEveryMs: number | undefined;
  readonly label: string | undefined;
  /** Gain of the wall clock on the monotonic one until the start, in whole milliseconds. */
  readonly gainedMs: number;
}
