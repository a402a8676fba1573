import { StoreError } from "./errors.ts";

/**
 * A mark is a number under a name that only grows. A holder of a lease raises it under the fence of
 * the lease: "tick 7 has begun". Of all holders that raise a mark to the same number, at most one
 * succeeds, whatever clocks and leases do.
 */
export interface Mark {
  readonly value: number;
  /** Fence under which the value was stored. */
  readonly fence: bigint;
}

export type RaiseOutcome =
  | { readonly kind: "raised" }
  /** Another grant has raised the mark as far, or a later holder has raised it. */
  | { readonly kind: "refused" }
  /** The time of the value is more than a second ahead of the store's clock. */
  | { readonly kind: "early" };

/** Limit for the lead of a caller's clock. A clock that is a year ahead must not raise a mark. */
export const earlyMsMax = 1_000;

/** Limit for the number of marks in one store. */
export const marksMax = 10_000;

/**
 * True if `next` replaces `stored`. The same value counts again only for the same fence: a greatest
 * value alone would let two holders begin the same tick. A smaller fence is refused, so that a
 * holder that woke up late begins no later tick.
 */
export function replacesMark(stored: Mark | undefined, next: Mark): boolean {
  if (stored === undefined) return true;
  if (next.value === stored.value) return next.fence === stored.fence;
  return next.value > stored.value && next.fence >= stored.fence;
}

/** Raises a mark among all marks of a store. Returns false if the mark is refused. */
export function raiseIn(marks: Map<string, Mark>, name: string, next: Mark): boolean {
  const stored = marks.get(name);
  if (!replacesMark(stored, next)) return false;
  if (stored === undefined && marks.size >= marksMax) {
    throw new StoreError(`there are ${marksMax} marks already: too many names of schedules`);
  }
  marks.set(name, next);
  return true;
}
