import type { HeldLease } from "./held-lease.ts";

/** Key of the method that `console.log` calls. Registered, so that no Node.js module is needed. */
const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

/** A lease as logs show it. Named so because `console.log` prints the name of the class. */
class Lease {
  readonly resources: readonly string[];
  readonly label: string | undefined;
  /** As text: JSON has no `bigint`. Undefined if the store does not fence. */
  readonly fence: string | undefined;
  readonly state: string;

  constructor(lease: HeldLease) {
    this.resources = lease.resources;
    this.label = lease.label;
    this.fence = fenceText(lease);
    this.state = lease.state;
  }
}

/** Adds `toJSON` and the view of `console.log` to the prototype of leases. */
export function showLeases(prototype: HeldLease): void {
  const view = {
    value(this: HeldLease) {
      return new Lease(this);
    },
  };
  Object.defineProperties(prototype, { toJSON: view, [inspectSymbol]: view });
}

function fenceText(lease: HeldLease): string | undefined {
  try {
    return String(lease.fence);
  } catch {
    return undefined; // The store does not fence.
  }
}
