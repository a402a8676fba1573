import type { Finding } from "./report/doctor.ts";
import type { HoldfastError, Holder, LossReason, Vote, VoteKind } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Instant, SteadyRuntime } from "./ports.ts";
import type { Scheduler } from "./time/scheduler.ts";

/** What a store can promise. A call that needs more rejects with UnsupportedError. */
export interface StoreCapabilities {
  /** True if a grant has a fence. */
  readonly fencing: boolean;
  /** True if several resources can be acquired at once, all or nothing. */
  readonly multiResource: boolean;
}

/** What can cancel one call: the caller's signal, or the close of its manager. */
export interface Cancellation {
  readonly cancelled: boolean;
  /** Sets the one listener, called at the cancellation; undefined removes it. */
  listen(listener: (() => void) | undefined): void;
  /** Resolves when `work` does, or earlier if cancelled. `work` must not reject. */
  orUntil(work: Promise<void>): Promise<void>;
}

/** One attempt to acquire. */
export interface AcquireRequest {
  /** Sorted, without duplicates, at least one. */
  readonly resources: readonly string[];
  /** Unique to this attempt. */
  readonly owner: string;
  readonly ttlMs: number;
  /** Read before the first byte of this attempt is sent. Validity counts from here. */
  readonly started: Instant;
  /**
   * End of the caller's wait, by the monotonic clock; left out if it has none. The attempt must end
   * within one node timeout after it.
   */
  readonly waitEndsMs?: number;
  /** When cancelled, the attempt ends as failed at once, and cleans up after itself. */
  readonly cancellation: Cancellation;
}

/** A granted attempt, as the store knows it. Passed back to the store in every later call. */
export interface Grant {
  readonly resources: readonly string[];
  readonly owner: string;
  /** Undefined if the store does not fence. */
  readonly fence: bigint | undefined;
  /** TTL minus the drift allowance, counted from the request's `started`. */
  readonly validityMs: number;
}

export type AttemptOutcome =
  | { readonly kind: "granted"; readonly grant: Grant }
  | {
      /** Others hold the resource: contention, not a fault. */
      readonly kind: "held";
      readonly holder: Holder | undefined;
      /** Pause before the next attempt, unless a notification comes first; undefined if unknown. */
      readonly retryInMs?: number | undefined;
      /**
       * Number of waiters before this one, if the store notifies it when it is first. A greater
       * rank has longer pauses; left out, the pauses are those of the first. Only the first waiter,
       * 0, polls at short intervals while a client of another library holds the resource.
       */
      readonly rank?: number | undefined;
      /** True if too few nodes granted and no owner has a quorum: rivals may collide again. */
      readonly split?: boolean;
      /** Returns the vote of each node, for the error of a wait that ends with this refusal. */
      readonly votes?: () => readonly Vote[];
      readonly cleanup: Promise<void> | undefined;
    }
  | {
      readonly kind: "failed";
      readonly error: HoldfastError;
      /** False if waiting does not cure it: wrong set-up, missing permission. */
      readonly retryable: boolean;
      readonly cleanup: Promise<void> | undefined;
    };

export type ExtendOutcome =
  | { readonly kind: "extended"; readonly validityMs: number }
  /** Too few nodes still have the lock: another owner may hold it. The lease is over. */
  | { readonly kind: "gone" }
  /** Too few nodes replied. The old validity stands. */
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
       * True if the lock was handed over to the next waiting call of the same manager, without a
       * request: the store may not have had it any more. Left out if the store had and deleted it.
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
   * `held`: one owner on a quorum. `free`: a quorum has no lock. `split`: neither, for example
   * during rival attempts. `unknown`: too few nodes replied.
   */
  readonly state: "held" | "free" | "split" | "unknown";
  /** True if Holdfast did not write the value: it may be another client's lock, or no lock. */
  readonly foreign?: true;
  /** True if the lock has no expiry on a quorum of nodes: it does not end by itself. */
  readonly neverExpires?: true;
  readonly label: string | undefined;
  readonly fence: bigint | undefined;
  /** Time for which a quorum of nodes still has the lock. */
  readonly remainingMs: number | undefined;
  /** Number of waiters in the store's queue, about one per manager. Left out if it keeps none. */
  readonly waiters?: number;
  readonly nodes: readonly NodeInspection[];
}

export type BreakAnswer =
  /** At least one of the owners had the lock, and none of them can have it any more. */
  | { readonly kind: "broken" }
  /** None of the owners had the lock. */
  | { readonly kind: "gone" }
  /** Too few nodes replied: the owners may still have the lock. */
  | { readonly kind: "failed"; readonly error: HoldfastError };

export interface NodeStatus {
  readonly node: string;
  /** `off` if admission is off or the store has none, `unknown` before the node's first reply. */
  readonly admission: "admitted" | "quarantined" | "unknown" | "off";
  /** Time until a quarantined node may vote, as far as known. */
  readonly quarantineRemainingMs: number | undefined;
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly lastFault: unknown;
}

/** What a manager lends to the store that it opens. */
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
 * One wait for resources in the store: an entry in its queue, and notifications of when to send an
 * attempt. Safety rests on neither: a lost message costs only time.
 */
export interface Waiting {
  /** Like `OpenStore.attempt`. A refused attempt keeps the waiter's entry in the queue. */
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /** Sets the listener, called when an attempt may succeed; undefined removes it. */
  listen(listener: (() => void) | undefined): void;
  /** Leaves the queue, when the wait ends without a grant. Takes limited time, never rejects. */
  leave(): Promise<void>;
}

/** A store in use by one manager. Every promise settles within a limit that its options set. */
export interface OpenStore {
  /** Tries once to lock all resources of the request, all or nothing. Never waits for a holder. */
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /** Begins a wait. If left out, or undefined for these resources, waiters poll. */
  waiting?(resources: readonly string[]): Waiting | undefined;
  /**
   * Returns for how long this manager leaves these resources to clients of other libraries before
   * its next attempt; 0 if it does not. Left out if there are no such clients.
   */
  gapRemainingMs?(resources: readonly string[]): number;
  /** Gives the grant a new TTL, counted from now. Never shortens what it has. */
  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome>;
  /**
   * Extends many grants at once. Calls `onExtended` once per grant, as soon as its outcome is
   * certain, and not before this returns. Left out if grants are always extended one by one.
   */
  extendMany?(grants: readonly Grant[], ttlMs: number, onExtended: OnExtended): void;
  /** Checks that the store still has the grant, without a change of its expiry. */
  prove(grant: Grant): Promise<ProveOutcome>;
  /**
   * Turns the grant into that of the next holder: gives it a greater, reserved fence, without a
   * request. Returns false if that is not possible. Left out if no fences are reserved.
   */
  handOver?(grant: Grant): boolean;
  /** Deletes what the store has of this grant, and nothing of a later one. */
  release(grant: Grant): Promise<ReleaseOutcome>;
  inspect(resource: string): Promise<Inspection>;
  /**
   * Returns everything that is not free, in no order. Left out if the store cannot list; rejects
   * with UnsupportedError if only its client cannot.
   */
  list?(): Promise<readonly Inspection[]>;
  /** Deletes the lock on `resource` on each node where one of these owners has it. */
  break?(resource: string, owners: readonly string[]): Promise<BreakAnswer>;
  nodes(): Promise<readonly NodeStatus[]>;
  /** Returns problems of servers and set-up, for leases of `ttlMs`. Never rejects. */
  doctor(ttlMs: number): Promise<readonly Finding[]>;
  /** Ends the store's own activity, after its pending releases, which take limited time. */
  close(): Promise<void>;
}

/** What `createLocks` takes. Made by `memory()`, `redis(client)`, `redlock(clients)`, … */
export interface Store {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** Longest TTL of a lock. */
  readonly maxTtlMs: number;
  /**
   * Returns how long a lease of this TTL is valid: the TTL minus the drift allowance. Left out if
   * that is the whole TTL.
   */
  validityMs?(ttlMs: number): number;
  open(context: StoreContext): OpenStore;
}
