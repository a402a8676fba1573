import { spacingMs } from "./deadline.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Scheduler, Task } from "../time/scheduler.ts";

/**
 * Proves leases that the store has called into doubt: at once, and again after pauses, until the
 * store confirms or denies them, or their validity is over. Leases without renewal are included.
 */
export class DoubtResolver {
  readonly #scheduler: Scheduler;
  /** Pause before the next proof of a lease; undefined while a proof is under way. */
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

  /** Never rejects: the result shows in the lease's state and events. */
  async #prove(lease: HeldLease): Promise<void> {
    this.#pauses.set(lease, undefined);
    try {
      await lease.prove();
    } catch {}
    // Lost or released in the meantime: its end has called `forget`.
    if (!this.#pauses.has(lease)) return;
    if (lease.state !== "doubtful") return this.forget(lease);
    const dueMs = this.#scheduler.clock.monotonicMs() + spacingMs(lease.terms);
    const task = this.#scheduler.at(dueMs, false, () => void this.#prove(lease));
    this.#pauses.set(lease, task);
  }
}
