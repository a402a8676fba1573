import type { Cancellation } from "./cancellation.ts";
import type { Finding } from "./doctor.ts";
import type { HoldfastError, Holder, LossReason, Vote, VoteKind } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Instant, SteadyRuntime } from "./ports.ts";
import type { Scheduler } from "./scheduler.ts";

/** What a store can promise. A call for more than that is an UnsupportedError, never a pretence. */
export interface StoreCapabilities {
  /** Whether a grant carries a fence. */
  readonly fencing: boolean;
  /** Whether several resources can be taken at once, all or nothing. */
  readonly multiResource: boolean;
}

export interface AcquireRequest {
  /** Sorted, without duplicates, at least one. */
  readonly resources: readonly string[];
  /** Unique to this very attempt. */
  readonly owner: string;
  readonly ttlMs: number;
  /** Taken before the first byte of this attempt; validity counts from here. */
  readonly started: Instant;
  /**
   * When the caller's wait ends, by the monotonic clock; left out where it has no end. An attempt
   * has one node's time to answer beyond it, and no more.
   */
  readonly waitEndsMs?: number;
  /** When cancelled, the attempt ends as failed at once, and cleans up after itself. */
  readonly cancellation: Cancellation;
}

/** A granted attempt, as the store knows it. Passed back to the store in every later call. */
export interface Grant {
  readonly resources: readonly string[];
  readonly owner: string;
  /** Undefined where the store does not fence. */
  readonly fence: bigint | undefined;
  /** TTL less the allowance for drift, counted from the request's `started`. */
  readonly validityMs: number;
}

export type AttemptOutcome =
  | { readonly kind: "granted"; readonly grant: Grant }
  | {
      /** Others hold it: contention, not a fault. */
      readonly kind: "held";
      readonly holder: Holder | undefined;
      /** When to ask again if nobody tells us before; undefined where the store cannot say. */
      readonly retryInMs?: number | undefined;
      /**
       * How many waiters stand in front of this one, if the store notifies it when its turn comes.
       * It asks the more rarely the greater this is; left out, it asks as the first one does. Only
       * the first one, 0, asks at short intervals while a client of another library holds it.
       */
      readonly rank?: number | undefined;
      /** Some nodes granted it, too few, and no owner has a quorum: rivals may meet again. */
      readonly split?: boolean;
      /** How each node answered, for the error of a wait that ends so; made when it is called. */
      readonly votes?: () => readonly Vote[];
      readonly cleanup: Promise<void> | undefined;
    }
  | {
      readonly kind: "failed";
      readonly error: HoldfastError;
      /** False where waiting cannot cure it: wrong set-up, missing permission. */
      readonly retryable: boolean;
      readonly cleanup: Promise<void> | undefined;
    };

export type ExtendOutcome =
  | { readonly kind: "extended"; readonly validityMs: number }
  /** So many nodes no longer have it that another may hold it. It is over. */
  | { readonly kind: "gone" }
  /** Not enough nodes answered. The old validity stands. */
  | { readonly kind: "failed"; readonly error: HoldfastError };

/** Told of each of many grants once, by its place among them, and of when the answer came. */
export type TellExtended = (place: number, outcome: ExtendOutcome, heard: Instant) => void;

export type ProveOutcome =
  | { readonly kind: "proven" }
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly error: HoldfastError };

/** An expired lease is an outcome, not an exception. */
export type ReleaseOutcome =
  | {
      readonly released: true;
      /**
       * True if the lock went to the next waiting call of the same manager, and the store was not
       * asked: whether it still had the lock is not known. Otherwise it had it, and deleted it.
       */
      readonly handedOver?: true;
    }
  | { readonly released: false; readonly reason: LossReason };

export interface NodeInspection {
  readonly node: string;
  /** `granted` never appears: looking asks for nothing. `free` stands for no lock there. */
  readonly vote: Exclude<VoteKind, "granted"> | "free";
  readonly holder?: Holder;
  readonly cause?: unknown;
}

export interface Inspection {
  readonly resource: string;
  /**
   * `held`: one owner on a quorum. `free`: a quorum has no lock. `split`: neither, as in the middle
   * of rival attempts. `unknown`: too few nodes answered.
   */
  readonly state: "held" | "free" | "split" | "unknown";
  /** True if Holdfast did not write what holds it: it may be another client's lock, or no lock. */
  readonly foreign?: true;
  /** True if a quorum of nodes keeps it without an expiry: it does not end by itself. */
  readonly neverExpires?: true;
  readonly label: string | undefined;
  readonly fence: bigint | undefined;
  /** For how long a quorum of nodes still has it. */
  readonly remainingMs: number | undefined;
  /** How many managers wait for it in the store's queue, where it keeps one. */
  readonly waiters?: number;
  readonly nodes: readonly NodeInspection[];
}

export type BreakAnswer =
  /** One of the owners had it, and none of them can have it any more. */
  | { readonly kind: "broken" }
  /** None of the owners had it. */
  | { readonly kind: "gone" }
  /** Not enough nodes answered: they may have it still. */
  | { readonly kind: "failed"; readonly error: HoldfastError };

export interface NodeStatus {
  readonly node: string;
  /** `off` if the store admits no nodes, `unknown` until it has asked. */
  readonly admission: "admitted" | "quarantined" | "unknown" | "off";
  /** How long a quarantined node still has to wait, as far as we know. */
  readonly quarantineLeftMs: number | undefined;
  readonly runId: string | undefined;
  readonly version: string | undefined;
  readonly lastFault: unknown;
}

export interface StoreContext {
  readonly runtime: SteadyRuntime;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  /**
   * The store has learnt something that may end leases: it is asked about every grant held, and
   * those for which it names a reason are lost at once.
   */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void;
  /**
   * What granted some leases may not know them any more: those for which it names a cause turn
   * doubtful, and are proven again at once.
   */
  doubt(judge: (grant: Grant) => Error | undefined): void;
}

/**
 * One wait for resources, as the store knows it: a place in its queue, and word of when an attempt
 * is worth while. No safety rests on either: a lost message costs time only.
 */
export interface Waiting {
  /** As `OpenStore.attempt`; a refused attempt leaves the waiter's place in the queue. */
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /** Calls `listener` whenever an attempt has become worth while; undefined stops it. */
  listen(listener: (() => void) | undefined): void;
  /** The wait is over without a grant: gives up the place. Bounded, never rejects. */
  leave(): Promise<void>;
}

/** A store in use by one manager. Every promise settles within a bound of its options. */
export interface OpenStore {
  attempt(request: AcquireRequest): Promise<AttemptOutcome>;
  /** Begins a wait. Left out, or undefined for these resources: whoever waits asks by turns. */
  waiting?(resources: readonly string[]): Waiting | undefined;
  /**
   * For how long this manager leaves these resources to clients of other libraries before it asks
   * again; 0 if it does not. Left out where there are no such clients.
   */
  gapLeftMs?(resources: readonly string[]): number;
  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome>;
  /**
   * The same for many at once: tells of each grant, by its place in the list, as soon as its own
   * outcome is certain, once, and not before it returns. Left out where none goes with another.
   */
  extendMany?(grants: readonly Grant[], ttlMs: number, tell: TellExtended): void;
  prove(grant: Grant): Promise<ProveOutcome>;
  /**
   * Makes it the grant of the next holder, with a greater fence, and tells nobody; false where that
   * cannot be. Left out where every holder has to ask the store itself.
   */
  passOn?(grant: Grant): boolean;
  release(grant: Grant): Promise<ReleaseOutcome>;
  inspect(resource: string): Promise<Inspection>;
  /**
   * Everything that is not free, in no order. Left out where the store cannot list; rejects with
   * UnsupportedError where only its client cannot.
   */
  list?(): Promise<readonly Inspection[]>;
  /** Takes `resource` from these owners, wherever they have it, and from nobody else. */
  break?(resource: string, owners: readonly string[]): Promise<BreakAnswer>;
  nodes(): Promise<readonly NodeStatus[]>;
  /** What is wrong with servers and set-up, for leases of `ttlMs`. Rejects for nothing. */
  doctor(ttlMs: number): Promise<readonly Finding[]>;
  /** Ends what the store itself started, after what it still owes (bounded) is done. */
  close(): Promise<void>;
}

/** What `createLocks` takes. Made by `memory()`, `redis(client)`, `redlock(clients)`, … */
export interface Store {
  readonly name: string;
  readonly capabilities: StoreCapabilities;
  /** The longest TTL that may be asked for. */
  readonly ttlMaxMs: number;
  /**
   * For how long a lease of this TTL is valid: less than the TTL by the allowance for drift. Left
   * out: for all of it.
   */
  validityMs?(ttlMs: number): number;
  open(context: StoreContext): OpenStore;
}
