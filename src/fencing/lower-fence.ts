import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import type { Duration } from "../core/time/durations.ts";
import type { FenceStore } from "./fence-store.ts";
import { guardedResources, type Fenced } from "./guard.ts";
import { greatestPlausible, plausibleFence, type ServerClock } from "./plausible-fence.ts";

/**
 * Repair after an accident: replaces stored fences that no lock server can have granted yet. Fences
 * are about the time in microseconds since 1970. If a fence far in the future was stored, guards
 * refuse every later holder.
 *
 * The new value is the fence of a lease that was acquired after the accident. This fence is greater
 * than the fence of every earlier lease, so guards still refuse all earlier holders. A fence that
 * is not far in the future is never lowered.
 */

export interface LowerFenceOptions {
  /** Resources whose stored fences are checked. @default every resource of the lease */
  readonly resource?: string | readonly string[];
  /**
   * How far in the future a stored fence, as a time in microseconds since 1970, may be. A greater
   * one is replaced.
   * @default "24h"
   */
  readonly maxFenceAhead?: Duration;
}

export interface LowerFenceResult {
  /** Number of stored fences that were replaced; 0 if none was too great. */
  readonly lowered: number;
}

/** A fence store whose fences can be lowered after an accident. */
export interface LowerableFenceStore extends FenceStore {
  /**
   * Replaces the stored fence of each resource by the fence of `fenced`, if the stored fence is
   * greater than `maxFenceAhead` allows. Pass a lease that was acquired after the accident.
   */
  lower(fenced: Fenced | bigint, options?: LowerFenceOptions): Promise<LowerFenceResult>;
}

export interface Lowering {
  readonly fence: bigint;
  /** Stored fences greater than this limit are lowered. */
  readonly limit: bigint;
}

/**
 * Checks the fence to store, and returns the limit above which stored fences are lowered. Uses the
 * clock of the server that stores the fences.
 */
export async function loweringOf(
  fenced: Fenced | bigint,
  resource: string,
  maxFenceAhead: Duration | undefined,
  serverClock: ServerClock,
): Promise<Lowering> {
  const fence = await plausibleFence(fenced, resource, maxFenceAhead, serverClock);
  const limit = greatestPlausible(maxFenceAhead, await serverClock());
  if (limit !== undefined) return { fence, limit };
  throw new InvalidOptionError("maxFenceAhead", 'a duration, such as "24h"', maxFenceAhead);
}

/**
 * Lowers the stored fences of the resources, one after another. `lowerOne` resolves to true if it
 * has lowered the stored fence of its resource.
 */
export async function lowerEach(
  fenced: Fenced | bigint,
  options: LowerFenceOptions,
  serverClock: (resource: string) => Promise<number>,
  lowerOne: (resource: string, lowering: Lowering) => Promise<boolean>,
): Promise<LowerFenceResult> {
  knownOptions("options", options, ["resource", "maxFenceAhead"]);
  const resources = guardedResources(fenced, options.resource);
  let lowered = 0;
  for (const resource of resources) {
    const clock = (): Promise<number> => serverClock(resource);
    const lowering = await loweringOf(fenced, resource, options.maxFenceAhead, clock);
    if (await lowerOne(resource, lowering)) lowered += 1;
  }
  return { lowered };
}
