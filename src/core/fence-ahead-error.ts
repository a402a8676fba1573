import { HoldfastError } from "./errors.ts";
import { quoted } from "./report/quoted.ts";

const dayUs = 86_400_000_000n;

/**
 * A guard refused a fence that no correct client can have yet, and did not store it. A fence is
 * about the time in microseconds, so this one lies in the future. If the guard stored it, it would
 * refuse the smaller fences of all later holders.
 */
export class FenceAheadError extends HoldfastError {
  readonly fence: bigint;
  /** Greatest fence that the guard would have accepted. */
  readonly limit: bigint;

  constructor(resource: string, fence: bigint, limit: bigint) {
    const days = (fence - limit) / dayUs;
    super(
      "FENCE_AHEAD",
      `fence ${fence} for ${quoted(resource)} is ${days > 0n ? `${days} days and more ` : ""}` +
        "above what `maxFenceAhead` allows by the clock of the guard: a lease has no such fence " +
        "unless this clock, or that of the lock servers, is wrong",
      { resources: [resource] },
    );
    this.fence = fence;
    this.limit = limit;
  }
}
