import type { Finding } from "./report/doctor.ts";
import type { HoldfastError, Holder, LossReason, Vote, VoteKind } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Mark, RaiseOutcome } from "./mark.ts";
import type { Instant, SteadyRuntime } from "./ports.ts";
import type { Scheduler } from "./time/scheduler.ts";

/** Capabilities of a store. A call that needs more rejects with UnsupportedError. */
export interface StoreCapabilities {
  /** True if a grant has a fence. */
  readonly fencing: boolean;
  /** True if several resources can be acquired at once, all or nothing. */
  readonly multiResource: boolean;
  /** True if the store keeps marks, which `holdfast/schedule` needs. Left out if it does not. */
  readonly marks?: boolean;
}

/** Cancellation of one call, by the caller's signal or by the close of its manager. */
export interface Cancellation {
  readonly cancelled: boolean;
  /**
   * Sets the only listener, which is called at the cancellation. Undefined removes the listener.
   */
  listen(listener: (() => void) | undefined): void;
  /** Resolves when `work` resolves or the call is cancelled. `work` must not reject. */
  orUntil(work: Promise<void>): Promise<void>;
}

/** Request of one attempt to acquire resources. */
export interface AcquireRequest {
  /** At least one name, sorted, without duplicates. */
  readonly resources: readonly string[];
  /** Value that identifies this attempt. No other attempt has the same owner. */
  readonly owner: string;
  readonly ttlMs: number;
  /**
   * Time of a clock reading before the first byte of this attempt is sent. Validity counts from
   * here.
   */
  readonly started: Instant;
  /**
   * End of the caller's wait, by the monotonic clock. Left out if the wait has no end. The attempt
   * must end at most one node timeout after the wait.
   */
  readonly waitEndsMs?: number;
  /**
   * When the call is cancelled, the attempt ends at once as failed, and then deletes what it left
   * in the store.
   */
  readonly cancellation: Cancellation;
}

/** A granted attempt. The core passes this object back to the store in every later call. */
export interface Grant {
  readonly resources: readonly string[];
  readonly owner: string;
  /** Fence of the grant. Undefined if the store does not fence. */
  readonly fence: bigint | undefined;
  /** TTL minus the drift allowance, counted from the request's `started`. */
  readonly validityMs: number;
}

export type AttemptOutcome =
  | { readonly kind: "granted"; readonly grant: Grant }
  | {
      /** Another owner holds a resource of the request. This is contention, not a fault. */
      readonly kind: "held";
      readonly holder: Holder | undefined;
      /**
       * Pause before the next attempt, unless a notification comes first. Undefined if the store
       * cannot say when the resource may be free.
       */
      readonly retryInMs?: number | undefined;
      /**
       * Number of waiters before this one in the store's queue. Left out if the store has no queue.
       * The greater the rank, the longer the core pauses between two attempts. A missing rank
       * counts as 0. Only with rank 0 the core polls at short intervals while a client of another
       * library holds the resource.
       */
      readonly rank?: number | undefined;
      /**
       * Longest pause of the first waiter before its next attempt, for a store whose notifications
       * rarely get lost. Later waiters pause longer, by their rank. Left out: the maximum of the
       * call's `retry` option.
       */
      readonly recheckMs?: number;
      /**
       * True if neither this attempt nor any other owner has a quorum of nodes. Rival attempts may
       * collide again.
       */
      readonly split?: boolean;
      /** Returns the vote of each node, for the error of a wait that ends with this refusal. */
      readonly votes?: () => readonly Vote[];
      readonly cleanup: Promise<void> | undefined;
    }
  | {
      readonly kind: "failed";
      readonly error: HoldfastError;
      /** Time until enough nodes may vote. Left out if that is not known, or not the reason. */
      readonly votesInMs?: number | undefined;
      /** False if another attempt would fail in the same way: wrong set-up, missing permission. */
      readonly retryable: boolean;
      readonly cleanup: Promise<void> | undefined;
    };

export type ExtendOutcome =
  | { readonly kind: "extended"; readonly validityMs: number }
  /** Too few nodes still have the lock: another owner may hold it. The lease is over. */
  | { readonly kind: "gone" }
  /** Too few nodes replied. The lease keeps its old validity. */
  | { readonly kind: "failed"; readonly error: HoldfastError };

/** Called once per grant, with its index in the list and the time at which the reply arrived. */
export type OnExtended = (index: number, outcome: ExtendOutcome, received: Instant) => void;

export type ProveOutcome =
  | { readonly kind: "proven" }
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly error: HoldfastError };

/** Outcome of a release. An expired lease gives `released: false`, not an exception. */
export type ReleaseOutcome =
  | {
      readonly released: true;
      /**
       * True if the manager handed the lock over to its next waiting call, without a request. The
       * store may have lost the lock before that. Left out if the store still had the lock and
       * deleted it.
       */
      readonly handedOver?: true;
    }
  | { readonly released: false; readonly reason: LossReason };

export interface NodeInspection {
  readonly node: string;
  /** `free` if the node has no lock. Never `granted`: an inspection requests no vote. */
  readonly vote: Exclude<VoteKind, "granted"> | "free";
  readonly holder?: Holder;
  readonly cause?: unknown;
}

export interface Inspection {
  readonly resource: string;
  /**
   * `held`: one owner has the lock on a quorum of nodes. `free`: a quorum of nodes has no lock.
   * `split`: neither of these, for example during rival attempts. `unknown`: too few nodes replied.
   */
  readonly state: "held" | "free" | "split" | "unknown";
  /** True if Holdfast did not write the value: it may be another client's lock, or no lock. */
  readonly foreign?: true;
  /** True if the lock has no expiry on a quorum of nodes, and so does not end by itself. */
  readonly neverExpires?: true;
  readonly label: string | undefined;
  readonly fence: bigint | undefined;
  /** Time for which a quorum of nodes still has the lock. */
  readonly remainingMs: number | undefined;
  /**
   * Number of waiters in the store's queue, about one per manager. Left out if the store has no
   * queue.
   */
  readonly waiters?: number;
  readonly nodes: readonly NodeInspection[];
}

export type BreakAnswer =
  /** At least one of the given owners had the lock. Now none of them has it or can still get it. */
  | { readonly kind: "broken" }
  /** None of the given owners had the lock on any node. */
  | { readonly kind: "gone" }
  /** Too few nodes replied: the owners may still have the lock. */
  | { readonly kind: "failed"; readonly error: HoldfastError };

export interface NodeStatus {
  readonly node: string;
  /**
   * `off` if admission is off or the store has no admission, `unknown` before the node's first
   * reply.
   */
  readonly admission: "admitted" | "quarantined" | "unknown" | "off";
  /** Time until a quarantined node may vote. Undefined if unknown. */
  readonly quarantineRemainingMs: number | undefined;
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly lastFault: unknown;
}

/** Parts of a manager that its store uses. */
export interface StoreContext {
  readonly runtime: SteadyRuntime;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  /**
   * Called by the store when leases may have ended. Calls `judge` with every held grant; a lease is
   * lost at once if `judge` returns a reason.
   */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void;
  /**
   * Called by the store when a server may have lost its grants. Calls `judge` with every held
   * grant; a lease turns doubtful, and is proven again at once, if `judge` returns a cause.
   */
  doubt(judge: (grant: Grant) => Error | undefined): void;
}

/**
 * One waiting call as the store sees it: an entry in the store's queue, and notifications that an
 * attempt may succeed. Mutual exclusion depends on neither: a lost message costs only time.
 */
export interface Waiting {
  /**
   * Like `OpenStore.attempt`. If the attempt is refused, this call is also in the store's queue
   * afterwards.
   */
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /**
   * Sets the listener, which is called when an attempt may succeed. Undefined removes the listener.
   */
  listen(listener: (() => void) | undefined): void;
  /**
   * Removes the entry from the queue after a wait without a grant. Takes limited time, never
   * rejects.
   */
  leave(): Promise<void>;
}

/**
 * A store in use by one manager. Every promise settles within a time limit that the options of the
 * store set.
 */
export interface OpenStore {
  /** Tries once to lock all resources of the request, all or nothing. Never waits for a holder. */
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /**
   * Begins a wait for resources. Waiting calls poll if this method is left out or returns
   * undefined.
   */
  waiting?(resources: readonly string[]): Waiting | undefined;
  /**
   * Returns the time left in the gap of these resources: a pause in which this manager sends no
   * attempts, so that clients of other libraries get a turn. 0 if there is no gap. Left out if the
   * store has no such clients.
   */
  gapRemainingMs?(resources: readonly string[]): number;
  /**
   * Gives the grant a new TTL, counted from now. Never shortens the time that the grant has left.
   */
  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome>;
  /**
   * Extends many grants at once. Calls `onExtended` once per grant, as soon as its outcome is
   * certain, but only after this method has returned. Left out if grants are always extended one by
   * one.
   */
  extendMany?(grants: readonly Grant[], ttlMs: number, onExtended: OnExtended): void;
  /** Checks that the store still has the lock of this grant. Does not change the expiry. */
  prove(grant: Grant): Promise<ProveOutcome>;
  /**
   * Turns `grant` into a grant for the next holder, without a request: sets a greater fence, which
   * the store has reserved. Returns false if there is no reserved fence. Left out if the store
   * reserves no fences.
   */
  handOver?(grant: Grant): boolean;
  /** Deletes the lock of this grant from the store. Keeps the lock of a later grant. */
  release(grant: Grant): Promise<ReleaseOutcome>;
  inspect(resource: string): Promise<Inspection>;
  /**
   * Returns all resources that are not free, in any order. Left out if the store cannot list.
   * Rejects with UnsupportedError if only the client of this store cannot.
   */
  list?(): Promise<readonly Inspection[]>;
  /** Deletes the lock on `resource` on each node where one of these owners has it. */
  break?(resource: string, owners: readonly string[]): Promise<BreakAnswer>;
  /** Returns the mark of this name. Undefined if there is none. Left out if there are no marks. */
  mark?(name: string): Promise<Mark | undefined>;
  /**
   * Raises a mark under the fence of a lease, by the rule of `replacesMark`. `dueMs` is the time,
   * in ms since 1970, before which the value must not be stored. Rejects if the mark may have been
   * raised or not. Left out if there are no marks.
   */
  raiseMark?(name: string, mark: Mark, dueMs: number): Promise<RaiseOutcome>;
  nodes(): Promise<readonly NodeStatus[]>;
  /** Returns problems of servers and set-up, for leases of `ttlMs`. Never rejects. */
  doctor(ttlMs: number): Promise<readonly Finding[]>;
  /** Waits for pending releases, which take limited time, and ends the store's own activity. */
  close(): Promise<void>;
}

/** Argument of `createLocks`. Made by `memory()`, `redis(client)`, `redlock(clients)`, … */
export interface Store {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** Longest TTL of a lock. */
  readonly maxTtlMs: number;
  /**
   * Returns for how long a lease of this TTL is valid: the TTL minus the drift allowance. Left out
   * if a lease is valid for its whole TTL.
   */
  validityMs?(ttlMs: number): number;
  open(context: StoreContext): OpenStore;
}
