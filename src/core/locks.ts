import type { BreakOptions, BreakOutcome } from "./break.ts";
import type { Finding } from "./doctor.ts";
import type { LockEventName, LockListener } from "./events.ts";
import type { Lease } from "./lease.ts";
import type { LockOptions } from "./options.ts";
import type { Inspection, NodeStatus, StoreCapabilities } from "./store.ts";

export type Resources = string | readonly string[];
export type Work<Result> = (lease: Lease) => Result | PromiseLike<Result>;

/** A lock manager over one store. */
export interface Locks extends AsyncDisposable {
  /** What the store under it can promise. */
  readonly capabilities: StoreCapabilities;
  /** Waits up to `wait`; rejects with AcquireTimeoutError (held) or QuorumError (broken). */
  acquire(resources: Resources, options?: LockOptions): Promise<Lease>;
  /** One attempt; undefined when others hold it. Faults are still errors. */
  tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined>;
  /**
   * Holds the lease while `work` runs, renewing it. Rejects with LeaseLostError when the work
   * outlived its lease, carrying the work's `result` or its error as `cause`.
   */
  using<Result>(resources: Resources, work: Work<Result>): Promise<Result>;
  using<Result>(resources: Resources, options: LockOptions, work: Work<Result>): Promise<Result>;
  /** Who holds it, as each node tells. Asks for nothing, changes nothing. */
  inspect(resource: string): Promise<Inspection>;
  /** Every resource that is held now, by name. UnsupportedError where the store cannot tell. */
  list(): Promise<readonly Inspection[]>;
  /**
   * Takes a lock away from its holder, who learns it at its next renewal and may still be writing:
   * give the fence of the outcome to your guards. An inspection says whom to take it from: a later
   * holder keeps it. A name means the holder at this moment. Rejects with ForeignHolderError for
   * what Holdfast did not write, unless `foreign` is true.
   */
  break(seen: string | Inspection, options?: BreakOptions): Promise<BreakOutcome>;
  /** The state of each node of the store. */
  nodes(): Promise<readonly NodeStatus[]>;
  /**
   * What is wrong with servers, clocks and options, the gravest first; empty when all is well. Asks
   * every node, and waits for those that are slow.
   */
  doctor(): Promise<readonly Finding[]>;
  /** Listens to one kind of event; returns a function that stops listening. */
  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
  /** Ends waits with ClosedError, stops renewals, releases what is held. Idempotent. */
  close(): Promise<void>;
}
