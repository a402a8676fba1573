import type { BreakOptions, BreakOutcome } from "./break.ts";
import type { Finding } from "./report/doctor.ts";
import type { LockEventName, LockListener } from "./events.ts";
import type { Lease } from "./lease/lease.ts";
import type { LockOptions } from "./options.ts";
import type { Inspection, NodeStatus, StoreCapabilities } from "./store.ts";

export type Resources = string | readonly string[];
export type Work<Result> = (lease: Lease) => Result | PromiseLike<Result>;

/** A lock manager over one store. */
export interface Locks extends AsyncDisposable {
  /** Capabilities of this manager's store. */
  readonly capabilities: StoreCapabilities;
  /**
   * Acquires the resources, and waits up to `wait` while others hold them. Then rejects with
   * AcquireTimeoutError if they are still held, or with QuorumError for a fault of nodes.
   */
  acquire(resources: Resources, options?: LockOptions): Promise<Lease>;
  /** Makes one attempt. Returns undefined if others hold the resource. Rejects for a fault. */
  tryAcquire(resources: Resources, options?: LockOptions): Promise<Lease | undefined>;
  /**
   * Holds a lease while `work` runs, and renews it. Rejects with LeaseLostError if the work
   * outlived its lease. That error has the value of the work as `result`, or the error of the work
   * as `cause`.
   */
  using<Result>(resources: Resources, work: Work<Result>): Promise<Result>;
  using<Result>(resources: Resources, options: LockOptions, work: Work<Result>): Promise<Result>;
  /** Returns the holder of the resource, as each node reports it. Changes nothing. */
  inspect(resource: string): Promise<Inspection>;
  /**
   * Returns all held resources, sorted by name. Rejects with UnsupportedError if the store cannot
   * list.
   */
  list(): Promise<readonly Inspection[]>;
  /**
   * Takes a lock away from its holder. If `seen` is an inspection, only the holders in it lose the
   * lock. If `seen` is a name, the current holder does. The holder finds out at its next renewal
   * and may write until then: pass the fence of the outcome to your guards. Rejects with
   * ForeignHolderError for a value that Holdfast did not write, unless `foreign` is true.
   */
  break(seen: string | Inspection, options?: BreakOptions): Promise<BreakOutcome>;
  /** Returns the state of each node of the store. */
  nodes(): Promise<readonly NodeStatus[]>;
  /**
   * Returns problems of servers, clocks and options, the most severe first; empty if all is well.
   * Sends requests to every node, and waits for slow ones.
   */
  doctor(): Promise<readonly Finding[]>;
  /** Adds a listener for one kind of event. Returns a function that removes it. */
  on<Name extends LockEventName>(name: Name, listener: LockListener<Name>): () => void;
  /**
   * Ends waits with ClosedError, stops renewals and releases all leases. A second call returns the
   * same promise.
   */
  close(): Promise<void>;
}
