import { InvalidOptionError } from "../core/errors.ts";
import { FenceAheadError } from "../core/fence-ahead-error.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { fenceOf, type Fenced } from "./guard.ts";

/**
 * Limit for how far in the future a fence may be, as a time in microseconds since 1970.
 *
 * The fences of the lock servers are microseconds since 1970, or less. If a guard stored a far
 * greater fence, from a wrong unit or a forged header, it would refuse every later holder for ever.
 * The default is a day. This is more than the 14 hours by which a clock in the wrong time zone is
 * ahead. It is also short enough to wait until the clock has passed a wrong fence below the limit.
 */

export type MaxFenceAhead = Duration | "unlimited";

export interface FenceLimitOptions {
  /**
   * How far in the future a fence, as a time in microseconds since 1970, may be by the clock of
   * this machine or of the server that stores it. The guard refuses a greater one with
   * FenceAheadError. `"unlimited"` is for fences that are no microseconds since 1970.
   * @default "24h"
   */
  readonly maxFenceAhead?: MaxFenceAhead;
}

const defaultAheadMs = 86_400_000;
const maxAheadMs = 100 * 365 * 86_400_000;
// `Date.now` is stored when the module loads, because fake timers of a test replace it later.
const { now } = Date;

/** Returns the time of the server that stores the fences, in ms since 1970. */
export type ServerClock = () => Promise<number>;

/** Clock of this machine, for fences that this process stores. */
export const ownClock: ServerClock = () => Promise.resolve(now());

/** Returns the greatest fence that is plausible at `nowMs`; undefined if there is no limit. */
export function greatestPlausible(
  option: MaxFenceAhead | undefined,
  nowMs: number = now(),
): bigint | undefined {
  if (option === "unlimited") return undefined;
  return BigInt(Math.trunc(nowMs) + checkedMaxAhead(option)) * 1_000n;
}

/** Returns the limit in milliseconds. Throws InvalidOptionError for an invalid option. */
export function checkedMaxAhead(option: MaxFenceAhead | undefined): number {
  if (option === undefined) return defaultAheadMs;
  if (option === "unlimited") return Infinity;
  try {
    return durationMs("maxFenceAhead", option, { minMs: 0, maxMs: maxAheadMs });
  } catch {
    const expected = 'a duration of at most 100 years, such as "24h", or "unlimited"';
    throw new InvalidOptionError("maxFenceAhead", expected, option);
  }
}

/**
 * Reads the fence like `fenceOf`. Rejects with FenceAheadError if it is too far in the future.
 *
 * The clock of this machine may be behind by years, and its leases are valid all the same. So a
 * fence that this clock would refuse is compared with the clock of the server as well.
 */
export async function plausibleFence(
  fenced: Fenced | bigint,
  resource: string,
  option: MaxFenceAhead | undefined,
  serverClock: ServerClock,
): Promise<bigint> {
  const fence = fenceOf(fenced);
  const ownLimit = greatestPlausible(option);
  if (ownLimit === undefined || fence <= ownLimit) return fence;
  const limit = greatestPlausible(option, await serverClock()) ?? fence;
  if (fence > limit) throw new FenceAheadError(resource, fence, limit);
  return fence;
}
