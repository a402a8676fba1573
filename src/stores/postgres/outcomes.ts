import { ClosedError, type Holder } from "../../core/errors.ts";
import { labelOf } from "../../core/owners.ts";
import type { AcquireRequest, AttemptOutcome, Inspection } from "../../core/store.ts";
import type { Result } from "./operation.ts";
import { node } from "./server-watch.ts";

/** Pause before the next attempt, if another transaction kept the row of the lock locked. */
const busyRetryMs = 10;

/** Returns the outcome of an attempt whose call was cancelled. The caller has its own error. */
export function cancelled(
  request: AcquireRequest,
  cleanup: Promise<void> | undefined,
): AttemptOutcome {
  const error = new ClosedError(request.resources);
  return { kind: "failed", error, retryable: false, cleanup };
}

/** Returns the outcome of an attempt that was not granted. */
export function heldOutcome(result: Result): AttemptOutcome {
  if (result.is === "busy") {
    return { kind: "held", holder: undefined, retryInMs: busyRetryMs, cleanup: undefined };
  }
  const { left, rank } = result;
  return {
    kind: "held",
    holder: holderOf(result),
    retryInMs: typeof left === "number" ? Math.max(1, left) : undefined,
    ...(typeof rank === "number" ? { rank } : {}),
    cleanup: undefined,
  };
}

function holderOf({ owner, fence, left }: Result): Holder | undefined {
  if (typeof owner !== "string") return undefined;
  const label = labelOf(owner);
  return {
    owner,
    ...(label === undefined ? {} : { label }),
    ...(typeof fence === "string" ? { fence: BigInt(fence) } : {}),
    ...(typeof left === "number" ? { remainingMs: Math.max(0, Math.floor(left)) } : {}),
  };
}

export function inspectionOf(resource: string, result: Result): Inspection {
  const holder = holderOf(result);
  return {
    resource,
    state: holder === undefined ? "free" : "held",
    label: holder?.label,
    fence: holder?.fence,
    remainingMs: holder?.remainingMs,
    ...(result.waiters === undefined ? {} : { waiters: result.waiters }),
    nodes: [holder === undefined ? { node, vote: "free" } : { node, vote: "held", holder }],
  };
}
