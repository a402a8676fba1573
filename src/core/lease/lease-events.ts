import type { LossReason } from "../errors.ts";
import type { LockEvents } from "../events.ts";
import type { HeldLease } from "./held-lease.ts";
import type { StallReport } from "../time/stall-report.ts";
import type { Grant, ReleaseOutcome } from "../store.ts";

/** Key of a lease's method for guards. A registered symbol, so that guards need not import it. */
const rejectionSymbol = Symbol.for("holdfast.lease.fenceRejected");

type RejectionEvent = Omit<LockEvents["fence-rejected"], "resources" | "label">;

/** Adds the method that guards call to the prototype of leases. */
export function hearGuards(prototype: HeldLease): void {
  Object.defineProperty(prototype, rejectionSymbol, {
    /** Called by a guard that rejected this lease's fence. */
    value(this: HeldLease, event: RejectionEvent) {
      this.terms.host.events.emit("fence-rejected", { ...about(this), ...event });
    },
  });
}

export function tellRenewed(lease: HeldLease, grant: Grant): void {
  const { events } = lease.terms.host;
  if (!events.wants("renewed")) return;
  const { fence } = grant;
  events.emit("renewed", { ...about(lease), fence, remainingMs: lease.remainingMs() });
}

export function tellDoubtful(lease: HeldLease, cause: unknown): void {
  const remainingMs = lease.remainingMs();
  lease.terms.host.events.emit("doubtful", { ...about(lease), remainingMs, cause });
}

export function tellLost(
  lease: HeldLease,
  fence: bigint | undefined,
  reason: LossReason,
  cause: unknown,
  stalls: StallReport,
): void {
  const told = { ...about(lease), fence, reason, heldMs: heldMs(lease), cause, ...stalls };
  lease.terms.host.events.emit("lost", told);
}

export function tellReleased(lease: HeldLease, outcome: ReleaseOutcome): void {
  const { events } = lease.terms.host;
  if (!events.wants("released")) return;
  events.emit("released", {
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
