import { labelOf } from "../owners.ts";
import type { Inspection } from "../store.ts";
import type { Holder } from "./holder.ts";

/** What a store without a quorum knows of a lock. */
interface OneNodeLock {
  readonly resource: string;
  /** Name of the only node. */
  readonly node: string;
  /** Undefined if the lock is free. */
  readonly holder: Holder | undefined;
  /** Left out if the store has no queue. */
  readonly waiters?: number | undefined;
}

/** Returns the inspection of a lock in a store without a quorum. */
export function inspectionOf({ resource, node, holder, waiters }: OneNodeLock): Inspection {
  return {
    resource,
    state: holder === undefined ? "free" : "held",
    label: holder?.label,
    fence: holder?.fence,
    remainingMs: holder?.remainingMs,
    ...(waiters === undefined ? {} : { waiters }),
    nodes: [holder === undefined ? { node, vote: "free" } : { node, vote: "held", holder }],
  };
}

/** Returns the inspection if the only node did not reply. */
export function unknownInspection(resource: string, node: string, cause: Error): Inspection {
  return {
    resource,
    state: "unknown",
    label: undefined,
    fence: undefined,
    remainingMs: undefined,
    nodes: [{ node, vote: "failed", cause }],
  };
}

/** Returns the holder that an owner in the store stands for. */
export function holderOf(owner: string, fence: bigint | undefined, leftMs?: number): Holder {
  const label = labelOf(owner);
  return {
    owner,
    ...(label === undefined ? {} : { label }),
    ...(fence === undefined ? {} : { fence }),
    ...(leftMs === undefined ? {} : { remainingMs: Math.max(0, Math.floor(leftMs)) }),
  };
}
