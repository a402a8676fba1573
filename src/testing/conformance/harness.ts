import type { Locks } from "../../core/locks.ts";
import type { LockDefaults } from "../../core/options.ts";
import type { StoreCapabilities } from "../../core/store.ts";

/** Store and settings for which the conformance cases run. */
export interface ConformanceHarness {
  /**
   * Opens a new manager, as `createLocks` does. All managers of one harness use the same state, as
   * if each were in a process of its own. The cases close the managers.
   */
  open(defaults?: LockDefaults): Promise<Locks>;
  /** Capabilities of the store. The cases test exactly these. */
  readonly capabilities: StoreCapabilities;
  /** Longest TTL that the store accepts. */
  readonly maxTtlMs: number;
  /**
   * Part of every resource name: letters, digits and dashes. Each run of the cases on the same
   * state needs a different namespace, in parallel and one after the other.
   */
  readonly namespace: string;
  /**
   * TTL for leases that are meant to expire: as short as the store allows, but long compared with
   * the time of one call. @default 400
   */
  readonly shortTtlMs?: number;
  /** Time for which a case waits to check that an event does not happen. @default 50 */
  readonly settleMs?: number;
  /**
   * True if the store serves waiting managers in the order in which they came. The cases test it
   * then. @default false
   */
  readonly servesInOrder?: boolean;
  /**
   * Deletes what the store keeps of free locks, as it may do by itself after a while. Fences must
   * grow all the same. @default nothing
   */
  cleanUp?(): Promise<void>;
  /** Lets time go by, for a store with a manual clock. @default real time */
  advance?(ms: number): Promise<void>;
}

/**
 * One behaviour that every store must have. `run` rejects with an Error that describes the failed
 * check.
 */
export interface ConformanceCase {
  /** Sentence that describes the behaviour, for use as the name of a test. */
  readonly name: string;
  readonly run: (harness: ConformanceHarness) => Promise<void>;
}
