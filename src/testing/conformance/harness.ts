import type { Locks } from "../../core/locks.ts";
import type { LockDefaults } from "../../core/options.ts";
import type { StoreCapabilities } from "../../core/store.ts";

/** What the suite needs to know of a store, and to be able to do with it. */
export interface ConformanceHarness {
  /**
   * A new manager, as `createLocks` makes it. All managers of one harness work on the same state,
   * as if each were in a process of its own. The suite closes them.
   */
  open(defaults?: LockDefaults): Promise<Locks>;
  /** What the store says that it can promise; the suite holds it to that. */
  readonly capabilities: StoreCapabilities;
  /** The longest TTL that the store takes. */
  readonly ttlMaxMs: number;
  /**
   * Part of every resource name. Two runs that share a state, at once or one after the other, need
   * different ones. Letters, digits and dashes.
   */
  readonly namespace: string;
  /**
   * A TTL for leases that are meant to expire: as short as the store allows, long against the time
   * that one call takes. @default 400
   */
  readonly shortTtlMs?: number;
  /** How long to look on where something must not happen. @default 50 */
  readonly settleMs?: number;
  /** Lets time go by, for a store with a manual clock. @default real time */
  advance?(ms: number): Promise<void>;
}

/** One behaviour that every store must show. Rejects with an Error that says what did not hold. */
export interface ConformanceCase {
  /** A sentence about behaviour, good as the name of a test. */
  readonly name: string;
  readonly run: (harness: ConformanceHarness) => Promise<void>;
}
