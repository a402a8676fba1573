import type { Locks } from "../../core/locks.ts";
import type { LockDefaults } from "../../core/options.ts";
import type { StoreCapabilities } from "../../core/store.ts";

/** What the suite needs of a store. */
export interface ConformanceHarness {
  /**
   * Opens a new manager, as `createLocks` does. All managers of one harness use the same state, as
   * if each were in a process of its own. The suite closes them.
   */
  open(defaults?: LockDefaults): Promise<Locks>;
  /** What the store can promise. The suite tests exactly that. */
  readonly capabilities: StoreCapabilities;
  /** Longest TTL that the store accepts. */
  readonly maxTtlMs: number;
  /**
   * Part of every resource name: letters, digits and dashes. Two runs that share a state need
   * different ones, in parallel and one after the other.
   */
  readonly namespace: string;
  /**
   * TTL for leases that are meant to expire: as short as the store allows, but long compared with
   * the time of one call. @default 400
   */
  readonly shortTtlMs?: number;
  /** Time to observe that something does not happen. @default 50 */
  readonly settleMs?: number;
  /** Lets time go by, for a store with a manual clock. @default real time */
  advance?(ms: number): Promise<void>;
}

/** One behaviour that every store must show. Rejects with an Error that says what did not hold. */
export interface ConformanceCase {
  /** A sentence about behaviour, for use as the name of a test. */
  readonly name: string;
  readonly run: (harness: ConformanceHarness) => Promise<void>;
}
