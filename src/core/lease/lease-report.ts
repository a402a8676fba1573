import { UnsupportedError } from "../errors.ts";
import type { LockEvents } from "../events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Grant, ReleaseOutcome } from "../store.ts";

/**
 * Key of the method of a lease that a guard calls when it rejects the fence. The symbol is
 * registered by name, so that guards need no import.
 */
const rejectionSymbol = Symbol.for("holdfast.lease.fenceRejected");
/** Key of the method that `console.log` calls. Registered, so that no Node.js module is needed. */
const inspectSymbol = Symbol.for("nodejs.util.inspect.custom");

type Loss = Omit<LockEvents["lost"], "resources" | "label" | "heldMs">;
type RejectionEvent = Omit<LockEvents["fence-rejected"], "resources" | "label">;

/** View of a lease for logs. The class is named `Lease` because `console.log` prints its name. */
class Lease {
  readonly resources: readonly string[];
  readonly label: string | undefined;
  /** Fence as text, because JSON has no `bigint`. Undefined if the store does not fence. */
  readonly fence: string | undefined;
  readonly state: string;

  constructor(lease: HeldLease) {
    this.resources = lease.resources;
    this.label = lease.label;
    this.fence = fenceText(lease);
    this.state = lease.state;
  }
}

/** Adds `toJSON`, the view of `console.log` and the method for guards to the prototype. */
export function showLeases(prototype: HeldLease): void {
  const view = {
    value(this: HeldLease) {
      return new Lease(this);
    },
  };
  const rejection = {
    /** Called by a guard that rejected this lease's fence. */
    value(this: HeldLease, event: RejectionEvent) {
      this.terms.host.events.emit("fence-rejected", { ...about(this), ...event });
    },
  };
  const methods = { toJSON: view, [inspectSymbol]: view, [rejectionSymbol]: rejection };
  Object.defineProperties(prototype, methods);
}

/** Returns the fence. Throws if the store does not fence. */
export function fenceOf({ fence, resources }: Grant): bigint {
  if (fence !== undefined) return fence;
  const why = "this store does not fence its leases: there is no fence to use";
  throw new UnsupportedError(why, { resources });
}

function fenceText(lease: HeldLease): string | undefined {
  try {
    return String(lease.fence);
  } catch {
    return undefined; // The store does not fence.
  }
}

export function emitRenewed(lease: HeldLease, { fence }: Grant): void {
  const { events } = lease.terms.host;
  if (!events.wants("renewed")) return;
  events.emit("renewed", { ...about(lease), fence, remainingMs: lease.remainingMs() });
}

export function emitDoubtful(lease: HeldLease, cause: unknown): void {
  const remainingMs = lease.remainingMs();
  lease.terms.host.events.emit("doubtful", { ...about(lease), remainingMs, cause });
}

export function emitLost(lease: HeldLease, loss: Loss): void {
  lease.terms.host.events.emit("lost", { ...about(lease), heldMs: heldMs(lease), ...loss });
}

export function emitReleased(lease: HeldLease, outcome: ReleaseOutcome): void {
  lease.terms.host.events.emit("released", {
    ...about(lease),
    released: outcome.released,
    reason: outcome.released ? undefined : outcome.reason,
    handedOver: outcome.released && outcome.handedOver === true,
    heldMs: heldMs(lease),
  });
}

function heldMs({ terms, startedMs }: HeldLease): number {
  return terms.host.clock.monotonicMs() - startedMs;
}

function about({ resources, label }: HeldLease): Pick<HeldLease, "resources" | "label"> {
  return { resources, label };
}
