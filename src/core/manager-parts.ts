import { InvalidOptionError } from "./errors.ts";
import type { Emitter } from "./events.ts";
import type { Lease } from "./lease/lease.ts";
import type { Locks, Resources } from "./locks.ts";
import type { LockOptions } from "./options.ts";
import type { SteadyRuntime } from "./ports.ts";
import type { OpenStore } from "./store.ts";

/**
 * Parts of a manager that modules of this package use and applications do not: elections, `once`,
 * schedules. They reach the parts through a registered symbol, so that a manager of another copy of
 * the package, and a Proxy around a manager, work as well.
 */
export interface ManagerParts {
  readonly runtime: SteadyRuntime;
  readonly events: Emitter;
  readonly store: OpenStore;
  /** Throws if the manager is closed, or if a name or an option is invalid. Sends nothing. */
  check(resources: Resources, options: LockOptions): void;
  /** Waits for `call` before the manager closes its store. */
  track<Result>(call: Promise<Result>): Promise<Result>;
  /**
   * Calls `listener` when `close()` of the manager is called. Returns a function that removes it.
   */
  onClose(listener: () => void): () => void;
}

/** Name of the property that has the parts of a manager. */
export const managerParts: unique symbol = Symbol.for("holdfast.manager.parts") as never;

/** Returns the parts of a manager. Throws InvalidOptionError for any other object. */
export function partsOf(locks: Locks): ManagerParts {
  const given = locks as { readonly [managerParts]?: ManagerParts } | null | undefined;
  const parts = given?.[managerParts];
  if (parts !== undefined) return parts;
  throw new InvalidOptionError("locks", "a manager that createLocks returned", locks);
}

/** Returns the fence of a lease. Undefined if the store does not fence. */
export function knownFence(locks: Locks, lease: Lease): bigint | undefined {
  return locks.capabilities.fencing ? lease.fence : undefined;
}
