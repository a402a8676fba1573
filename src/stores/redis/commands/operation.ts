import type { Holder } from "../../../core/errors.ts";

/** Queue entry of a waiter. It is the same on all nodes. */
export interface Place {
  /**
   * Time at which the wait began, by the servers' clocks, in µs. The smallest ticket comes first.
   */
  readonly ticket: number;
  readonly id: string;
  /**
   * Number of holders in one manager that the grant may serve, one after the other. A fence is
   * reserved for each.
   */
  readonly tenures: number;
}

/**
 * Effect of a release on a waiter's queue entry: removes it ("-id"), keeps it ("=id"), or none
 * ("").
 */
export type PlaceLeft = "" | `-${string}` | `=${string}`;

export function placeLeft(how: "-" | "=", place: Place | undefined): PlaceLeft {
  return place === undefined ? "" : `${how}${place.id}`;
}

/** Grants all keys to the owner, or none. */
export interface Acquire {
  readonly kind: "acquire";
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  /** Proposal: fence that the client suggests. The node may grant another one. */
  readonly fence: number;
  /** Queue entry to make if the acquire is refused. Undefined if the caller does not wait. */
  readonly place: Place | undefined;
}

/**
 * Touches a held lock: raises its stored fence to `fence`, extends it (`ttlMs` > 0), or only checks
 * that the owner still has it.
 */
export interface Touch {
  readonly kind: "touch";
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  readonly fence: number;
}

/**
 * Deletes the keys of the owner. Does not read the node record: a release is safe on a node that
 * may not vote.
 */
export interface Release {
  readonly kind: "release";
  readonly keys: readonly string[];
  readonly owner: string;
  /**
   * Fence of the grant; 0 if unknown. With it, the server need not search for the owner in the
   * value.
   */
  readonly fence: number;
  readonly left: PlaceLeft;
}

/** Operation that a script runs. A script gets a list of one or more. */
export type Operation = Acquire | Touch | Release;

/** Report of a blank node, which is a node that may not vote. */
export interface BlankReport {
  readonly serverMs: number;
  /** Start of the quarantine, by the node's own clock. */
  readonly sinceMs: number;
  /**
   * True if the node was admitted earlier: it has restarted since then, or its data was replaced.
   */
  readonly everAdmitted: boolean;
  readonly ttlMaxMs: number;
}

/** Reply to an acquire or a touch that the node refuses for a reason that is not the lock. */
export type Refusal =
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

export type AcquireReply =
  | { readonly kind: "granted"; readonly fence: number }
  | {
      readonly kind: "held";
      /** Holder of the lock; undefined if the lock is free, but other waiters come first. */
      readonly holder: Holder | undefined;
      /**
       * Time until the lock expires, or until the first waiter has had its turn; undefined if
       * unknown.
       */
      readonly freeInMs: number | undefined;
      /** Number of waiters before this one; undefined if this call has no queue entry. */
      readonly rank: number | undefined;
    }
  | Refusal;

export type TouchReply =
  | { readonly kind: "done" }
  /**
   * `absent` is true if a key is missing. If it is false, a key has another owner, or a greater
   * fence than the grant.
   */
  | { readonly kind: "gone"; readonly absent: boolean }
  | Refusal;

/**
 * Reply to a list of touches, with one letter for each lock: K (done), N (the owner does not have
 * it any more), T (must be touched again alone). Or one refusal for all locks.
 */
export type RenewReply = { readonly kind: "decided"; readonly verdicts: string } | Refusal;

export interface ReleaseReply {
  /** True if every key of the request had this owner and was deleted. */
  readonly whole: boolean;
  /**
   * True if the request may have run before: that run may have deleted the keys that are missing
   * now.
   */
  readonly repeated: boolean;
}

export interface InspectReply {
  readonly holder: Holder | undefined;
  /** Number of entries in the lock's queue. */
  readonly waiters: number;
}
