import type { Holder } from "../../../core/errors.ts";

/** Entry of a waiter in the queues of the nodes: the same for its whole wait. */
export interface Place {
  /** When the wait began, by the servers' clocks, in µs. The smaller one comes first. */
  readonly ticket: number;
  readonly id: string;
  /** How many holders of one manager the grant may serve, one after the other: a fence for each. */
  readonly tenures: number;
}

/** What a release does with a waiter's entry: gives it up ("-id"), keeps it ("=id"), or nothing. */
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
  /** Proposal: the fence of the grant is not smaller. */
  readonly fence: number;
  /** Set if a refused acquire is to wait in the queues. */
  readonly place: Place | undefined;
}

/** Raises the fence of a held lock to `fence`, extends it (`ttlMs` > 0), or proves it. */
export interface Touch {
  readonly kind: "touch";
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  readonly fence: number;
}

/** Deletes the keys that are the owner's. Needs no record: safe on a node that may not vote. */
export interface Release {
  readonly kind: "release";
  readonly keys: readonly string[];
  readonly owner: string;
  /** Fence of the grant, 0 if unknown. It saves the server looking for the owner in the value. */
  readonly fence: number;
  readonly left: PlaceLeft;
}

/** What a script is sent, in a list of one or more. */
export type Operation = Acquire | Touch | Release;

/** What a node that may not vote reports of itself. */
export interface BlankReport {
  readonly serverMs: number;
  /** When its quarantine began, by its own clock. */
  readonly sinceMs: number;
  /** True if it was admitted before: then it has lost something. */
  readonly everAdmitted: boolean;
  readonly ttlMaxMs: number;
}

/** Verdict on an acquire or a touch if neither was decided by the lock. */
export type Refusal =
  | { readonly kind: "blank"; readonly report: BlankReport }
  | { readonly kind: "refused"; readonly error: Error };

export type AcquireReply =
  | { readonly kind: "granted"; readonly fence: number }
  | {
      readonly kind: "held";
      /** Undefined if the lock is free, but others wait for it. */
      readonly holder: Holder | undefined;
      /** When the holder's time, or that of the first waiter, is up; undefined if unknown. */
      readonly freeInMs: number | undefined;
      /** How many waiters come before this one; undefined without an entry in the queue. */
      readonly rank: number | undefined;
    }
  | Refusal;

export type TouchReply =
  | { readonly kind: "done" }
  /** `absent`: no key is there. Otherwise the key is another owner's, or newer than the grant. */
  | { readonly kind: "gone"; readonly absent: boolean }
  | Refusal;

/**
 * A letter for each lock of a list of touches: K done, N gone, T to be sent again alone. Or what is
 * the same for all of them.
 */
export type RenewReply = { readonly kind: "decided"; readonly verdicts: string } | Refusal;

export interface ReleaseReply {
  /** True if all keys of the owner were there, and were deleted. */
  readonly whole: boolean;
  /** The request may have run before: that run may have deleted what is missing now. */
  readonly repeated: boolean;
}

export interface InspectReply {
  readonly holder: Holder | undefined;
  /** How many managers have an entry in its queue. */
  readonly waiters: number;
}
