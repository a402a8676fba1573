import type { HeldLease } from "./held-lease.ts";
import type { Random } from "./ports.ts";
import type { Scheduler, Task } from "./scheduler.ts";

/**
 * Asks the store about leases that it has called into doubt itself: at once, and again with
 * spacing, until it says yes or no or their validity is over, whether they are renewed or not.
 */
export class Reproof {
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  /** The pause before the next question; undefined while one is under way. */
  readonly #pauses = new Map<HeldLease, Task | undefined>();

  constructor(scheduler: Scheduler, random: Random) {
    this.#scheduler = scheduler;
    this.#random = random;
  }

  start(lease: HeldLease): void {
    const pause = this.#pauses.get(lease);
    if (pause === undefined && this.#pauses.has(lease)) return;
    if (pause !== undefined) this.#scheduler.cancel(pause);
    void this.#ask(lease);
  }

  forget(lease: HeldLease): void {
    const pause = this.#pauses.get(lease);
    if (pause !== undefined) this.#scheduler.cancel(pause);
    this.#pauses.delete(lease);
  }

  /** Never rejects: what comes of it shows as the lease's state and in its events. */
  async #ask(lease: HeldLease): Promise<void> {
    this.#pauses.set(lease, undefined);
    try {
      await lease.prove();
    } catch {}
    // Lost or released in the meantime: whoever ended it has made us forget it.
    if (!this.#pauses.has(lease)) return;
    if (lease.state !== "doubtful") return this.forget(lease);
    const spacingMs = (lease.ttlMs / 10) * (0.75 + this.#random.fraction() / 2);
    const dueMs = this.#scheduler.clock.monotonicMs() + spacingMs;
    const task = this.#scheduler.at(dueMs, false, () => void this.#ask(lease));
    this.#pauses.set(lease, task);
  }
}
