import { InvalidOptionError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import type { Locks } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import { knownOptions, type LockOptions } from "../core/options.ts";
import { ledgerFor, type Ledger } from "./ledger.ts";
import { begunValue, overValue } from "./plan.ts";

export interface CronCoordinatorOptions extends Pick<LockOptions, "ttl" | "maxHold" | "label"> {
  /** Keeps which time was run last. @default the marks of the store */
  readonly ledger?: Ledger;
}

/** What node-cron calls for a task with `distributed: true`. */
export interface CronCoordinator {
  /** True if this process runs the task at the time in the key. */
  shouldRun(key: string): Promise<boolean>;
  onComplete(key: string): Promise<void>;
}

/** Key of node-cron: the name of the task, a colon, and its time in the form of toISOString. */
const keyPattern = /^(.+):(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)$/s;

/**
 * Returns a coordinator for the tasks of node-cron: pass it to `setRunCoordinator`. Each time of a
 * task is run in one process, and begun at most once, as by `schedule`. A time that comes during a
 * run is not run. Missed times are not run later.
 *
 * Throws UnsupportedError if the store keeps no marks and there is no `ledger`.
 */
export function cronCoordinator(
  locks: Locks,
  options: CronCoordinatorOptions = {},
): CronCoordinator {
  knownOptions("options", options, ["ttl", "maxHold", "label", "ledger"]);
  const { ledger: given, ...lock } = options;
  const parts = partsOf(locks);
  parts.check("node-cron", lock);
  const ledger = ledgerFor(locks, "node-cron", given);
  const leases = new Map<string, Lease>();
  return {
    async shouldRun(key) {
      const { name, tickMs } = parsed(key);
      const lease = await locks.tryAcquire(name, { ...lock, renew: true });
      if (lease === undefined) return false;
      let isOurs = false;
      try {
        isOurs = (await ledger.raise(name, begunValue(tickMs, 1), lease, tickMs)) === "raised";
        // The raise counts only within the validity of the lease.
        if (isOurs) lease.assertHeld();
      } catch (error) {
        await lease.release();
        throw error;
      }
      if (isOurs) leases.set(key, lease);
      else await lease.release();
      return isOurs;
    },
    async onComplete(key) {
      const { name, tickMs } = parsed(key);
      const lease = leases.get(key);
      if (lease === undefined) return;
      leases.delete(key);
      try {
        await ledger.raise(name, overValue(tickMs), lease, tickMs);
      } finally {
        await lease.release();
      }
    },
  };
}

function parsed(key: unknown): { readonly name: string; readonly tickMs: number } {
  const [, name, time] = typeof key === "string" ? (keyPattern.exec(key) ?? []) : [];
  if (name !== undefined && time !== undefined) return { name, tickMs: Date.parse(time) };
  throw new InvalidOptionError("key", "a name, a colon and an ISO time, as node-cron sends", key);
}
