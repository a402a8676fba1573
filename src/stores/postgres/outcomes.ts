import { ClosedError, type Holder } from "../../core/errors.ts";
import { holderOf, inspectionOf } from "../../core/report/one-node.ts";
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
    holder: holderIn(result),
    retryInMs: typeof left === "number" ? Math.max(1, left) : undefined,
    ...(typeof rank === "number" ? { rank } : {}),
    cleanup: undefined,
  };
}

function holderIn({ owner, fence, left }: Result): Holder | undefined {
  if (typeof owner !== "string") return undefined;
  return holderOf(owner, typeof fence === "string" ? BigInt(fence) : undefined, left ?? undefined);
}

export function inspectionIn(resource: string, result: Result): Inspection {
  return inspectionOf({ resource, node, holder: holderIn(result), waiters: result.waiters });
}
