import { UnsupportedError } from "../../src/core/errors.ts";
import type { Fenced, FenceRejection } from "../../src/fencing/guard.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";

/** Stands for a lease: the fields that a guard reads, and the rejections that it reports. */
export interface LeaseLike extends Fenced {
  readonly rejections: FenceRejection[];
}

export function leaseLike(fence: bigint, ...resources: readonly string[]): LeaseLike {
  const rejections: FenceRejection[] = [];
  const lease = {
    fence,
    resources: resources.length === 0 ? ["invoice:42"] : resources,
    rejections,
    [Symbol.for("holdfast.lease.fenceRejected")]: (event: FenceRejection) => rejections.push(event),
  };
  return lease;
}

/** Returns a stand-in for a lease of a store without fences. */
export function unfencedLease(): Fenced {
  return {
    resources: ["invoice:42"],
    get fence(): bigint {
      throw new UnsupportedError("this store gives no fences");
    },
  };
}

/** Awaits the promise and returns its rejection. Throws if it resolves. */
export async function rejectionOf(promise: PromiseLike<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}

/** Returns the numbers 1 to `count`, shuffled the same way for the same seed. */
export function shuffledFences(count: number, seed: number): bigint[] {
  const fences = Array.from({ length: count }, (_, index) => BigInt(index + 1));
  const random = new SeededRandom(seed);
  for (let index = count - 1; index > 0; index -= 1) {
    const other = Math.floor(random.fraction() * (index + 1));
    const held = fences[index] ?? 0n;
    fences[index] = fences[other] ?? 0n;
    fences[other] = held;
  }
  return fences;
}

/** Returns the fence that a lock server would give now: microseconds since 1970. */
export function fenceNow(): bigint {
  return BigInt(Date.now()) * 1_000n;
}
