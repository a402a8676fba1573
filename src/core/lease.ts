import type { Duration } from "./durations.ts";
import type { LeaseHost } from "./lease-host.ts";
import type { ReleaseOutcome } from "./store.ts";

export type LeaseState = "held" | "doubtful" | "lost" | "released";

/** Proof of holding, for as long as it says so. */
export interface Lease extends AsyncDisposable {
  readonly resources: readonly string[];
  readonly label: string | undefined;
  /** Greater with every acquisition of the resource. Throws UnsupportedError where not fenced. */
  readonly fence: bigint;
  /** Aborted with a LeaseLostError no later than the end of validity, whatever the store does. */
  readonly signal: AbortSignal;
  readonly state: LeaseState;
  /** What is left of the validity, from local clocks, never flattering. 0 once over. */
  remainingMs(): number;
  /** Throws LeaseLostError or LeaseReleasedError. Call it right before a side effect. */
  assertHeld(): void;
  /** Asks the store whether the lease is still ours. A "no" ends the lease. */
  prove(): Promise<boolean>;
  /**
   * A new validity for the same lease; never shortens it, never re-creates a lost one. Rejects
   * with LeaseLostError, or with QuorumError, and then the old validity still stands.
   */
  extend(ttl?: Duration): Promise<void>;
  /**
   * Gives it back. Never rejects for an expired lease; a second call has the first outcome. With
   * `handedOver` in it the store was not asked: call `prove()` before, if you need to know.
   */
  release(): Promise<ReleaseOutcome>;
}

/** What leases that were asked for with the same options have in common. */
export interface LeaseTerms {
  readonly host: LeaseHost;
  readonly ttlMs: number;
  readonly maxHoldMs: number;
  /** Time between renewals, in whole milliseconds; undefined for none. */
  readonly renewEveryMs: number | undefined;
  readonly label: string | undefined;
}
