import { spacingMs } from "./deadline.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Scheduler, Task } from "../time/scheduler.ts";

/**
 * Proves leases that turned doubtful because a server was replaced: calls `prove()` at once, and
 * again after pauses, until the store confirms or denies the lock, or the validity is over. Leases
 * without renewal are proven, too.
 */
export class DoubtResolver {
  readonly #scheduler: Scheduler;
  /** Pause before the next `prove()` of a lease; undefined while that call is under way. */
  readonly #pauses = new Map<HeldLease, Task | undefined>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  resolve(lease: HeldLease): void {
    const pause = this.#pauses.get(lease);
    if (pause === undefined && this.#pauses.has(lease)) return;
    if (pause !== undefined) this.#scheduler.cancel(pause);
    void this.#prove(lease);
  }

  forget(lease: HeldLease): void {
    const pause = this.#pauses.get(lease);
    if (pause !== undefined) this.#scheduler.cancel(pause);
    this.#pauses.delete(lease);
  }

  /** Calls `prove()` once. Never rejects: the result shows in the lease's state and events. */
  async #prove(lease: HeldLease): Promise<void> {
    this.#pauses.set(lease, undefined);
    try {
      await lease.prove();
    } catch {}
    // A lease that was lost or released in the meantime has called `forget` at its end.
    if (!this.#pauses.has(lease)) return;
    if (lease.state !== "doubtful") return this.forget(lease);
    const dueMs = this.#scheduler.clock.monotonicMs() + spacingMs(lease.terms);
    const task = this.#scheduler.at(dueMs, false, () => void this.#prove(lease));
    this.#pauses.set(lease, task);
  }
}
