import { InvalidOptionError, UnsupportedError } from "../core/errors.ts";
import type { Locks } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import type { Fenced } from "../fencing/guard.ts";

export type Raised = "raised" | "refused" | "early";

/**
 * Keeps one number for each schedule, which only grows. The stores with marks have a ledger of
 * their own. `postgresLedger` and `redisLedger` are for the others.
 */
export interface Ledger {
  /** Returns the number of this name. Undefined if there is none. */
  last(name: string): Promise<number | undefined>;
  /**
   * Stores `value` under the fence of the lease, if `value` is greater than the stored one and the
   * fence is not smaller than the stored one; both in one atomic step. Resolves to `raised` also if
   * this value with this fence was stored before. `dueMs` is the time, in ms since 1970, before
   * which `value` must not be stored: `early` if the clock of the ledger is more than a second
   * behind it.
   */
  raise(name: string, value: number, lease: Fenced, dueMs: number): Promise<Raised>;
}

/**
 * Returns the given ledger, otherwise that of the store. Throws UnsupportedError if the store keeps
 * no marks, or grants no fences.
 */
export function ledgerFor(locks: Locks, name: string, given: Ledger | undefined): Ledger {
  if (!locks.capabilities.fencing) {
    const why = "a schedule needs fences, and this store grants none";
    throw new UnsupportedError(why, { resources: [name] });
  }
  if (given === undefined) return storeLedger(locks, name);
  if (typeof given?.last === "function" && typeof given.raise === "function") return given;
  const expected = "a ledger, such as postgresLedger(pool) or redisLedger(client)";
  throw new InvalidOptionError("ledger", expected, given);
}

function storeLedger(locks: Locks, name: string): Ledger {
  const parts = partsOf(locks);
  const { store } = parts;
  if (locks.capabilities.marks !== true) {
    throw new UnsupportedError(
      "this store keeps no marks: pass a `ledger`, such as postgresLedger(pool)",
      { resources: [name] },
    );
  }
  return {
    async last(mark) {
      return (await parts.track(store.mark?.(mark) ?? Promise.resolve(undefined)))?.value;
    },
    async raise(mark, value, { fence }, dueMs) {
      const raising = store.raiseMark?.(mark, { value, fence }, dueMs);
      return raising === undefined ? "refused" : (await parts.track(raising)).kind;
    },
  };
}
