import { HoldfastError } from "./errors.ts";
import { quoted } from "./report/quoted.ts";

const dayUs = 86_400_000_000n;

/**
 * A guard refused a fence that is implausibly far ahead of the clock, and did not store it. A guard
 * that stored this fence would refuse the smaller fences of all later holders.
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
        "above what `maxFenceAhead` allows at this machine's clock: a lease has no such fence " +
        "unless this clock, or that of the lock servers, is wrong",
      { resources: [resource] },
    );
    this.fence = fence;
    this.limit = limit;
  }
}
