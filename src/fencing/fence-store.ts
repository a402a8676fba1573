import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { lowerEach, type LowerableFenceStore } from "./lower-fence.ts";
import { ownClock } from "./plausible-fence.ts";

/** Result of `FenceStore.admit`: accepted, or rejected with the greater fence in `seen`. */
export type Admission =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly seen: bigint };

/**
 * Store for the greatest fence of each resource. The HTTP guard calls `admit` before every request.
 */
export interface FenceStore {
  /**
   * Accepts `fence` if it is not smaller than the greatest fence seen for `resource`, and then
   * stores it. Comparison and write are one atomic step. If the store cannot decide, the promise
   * rejects, and the guard does not let the request pass.
   */
  admit(resource: string, fence: bigint): Promise<Admission>;
}

export function admission(fence: bigint, greatest: bigint): Admission {
  return greatest > fence ? { accepted: false, seen: greatest } : { accepted: true };
}

export interface MemoryFencesOptions {
  /** Largest number of resources kept; each takes about 200 bytes. @default 100_000 */
  readonly maxResources?: number;
}

const memoryMaxDefault = 100_000;

/**
 * Returns a fence store in the memory of this process. Use it for a single server process: the
 * fences are gone after a restart.
 *
 * If `maxResources` are stored, a request for a new resource fails with StoreError. No fence is
 * ever evicted, because an evicted fence would let a stale write pass.
 */
export function memoryFences(options: MemoryFencesOptions = {}): LowerableFenceStore {
  knownOptions("options", options, ["maxResources"]);
  const { maxResources: max = memoryMaxDefault } = options;
  if (!Number.isSafeInteger(max) || max < 1) {
    throw new InvalidOptionError("maxResources", "a whole number of at least 1", max);
  }
  const greatest = new Map<string, bigint>();
  return {
    admit: async (resource, fence) => {
      const last = greatest.get(resource);
      if (last === undefined && greatest.size >= max) {
        throw new StoreError(
          `the fences of ${max} resources are in memory and "${resource}" is not among them: ` +
            "raise `maxResources`, or keep fences in Redis or Postgres",
          { resources: [resource] },
        );
      }
      if (last === undefined || fence > last) greatest.set(resource, fence);
      return admission(fence, last ?? fence);
    },
    lower: (fenced, lowerOptions = {}) =>
      lowerEach(fenced, lowerOptions, ownClock, async (resource, { fence, limit }) => {
        if ((greatest.get(resource) ?? 0n) <= limit) return false;
        greatest.set(resource, fence);
        return true;
      }),
  };
}
