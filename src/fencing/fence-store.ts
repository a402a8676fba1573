import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";

/** What a fence store answers: go ahead, or the greater fence it has seen. */
export type Admission =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly seen: bigint };

/** Keeps the greatest fence of each resource. The HTTP guard asks it before every request. */
export interface FenceStore {
  /**
   * In one atomic step: accepts when `fence` is not smaller than the greatest seen, and keeps it.
   * Rejects when it cannot tell; the request is then refused.
   */
  admit(resource: string, fence: bigint): Promise<Admission>;
}

export function admission(fence: bigint, greatest: bigint): Admission {
  return greatest > fence ? { accepted: false, seen: greatest } : { accepted: true };
}

export interface MemoryFencesOptions {
  /** How many resources to remember. @default 100_000: some 20 MB. */
  readonly max?: number;
}

const memoryMaxDefault = 100_000;

/**
 * Keeps fences in this process: for one server process, and only until it restarts.
 *
 * At `max` resources it refuses new ones with a StoreError. It never forgets one instead: a
 * forgotten fence is a stale write that passes.
 */
export function memoryFences(options: MemoryFencesOptions = {}): FenceStore {
  knownOptions("options", options, ["max"]);
  const { max = memoryMaxDefault } = options;
  if (!Number.isSafeInteger(max) || max < 1) {
    throw new InvalidOptionError("max", "a whole number of at least 1", max);
  }
  const greatest = new Map<string, bigint>();
  return {
    admit: async (resource, fence) => {
      const last = greatest.get(resource);
      if (last === undefined && greatest.size >= max) {
        throw new StoreError(
          `the fences of ${max} resources are in memory and "${resource}" is not among them: ` +
            "raise `max`, or keep fences in Redis or Postgres",
          { resources: [resource] },
        );
      }
      if (last === undefined || fence > last) greatest.set(resource, fence);
      return admission(fence, last ?? fence);
    },
  };
}
