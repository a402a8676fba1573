import type { SentRequest } from "./activity.ts";
import type { HeldLease } from "./held-lease.ts";
import type { SteadyClock } from "../ports.ts";
import type { ExtendOutcome, Grant, OpenStore } from "../store.ts";

/**
 * Resolved promise whose `then` starts a microtask. Fake timers of a test may replace
 * `queueMicrotask`.
 */
const resolved = Promise.resolve();

/**
 * Golden ratio. With this step, each new phase falls into one of the widest gaps between the
 * earlier phases.
 */
const step = (Math.sqrt(5) - 1) / 2;

/**
 * Problem: leases that are acquired together are renewed together for as long as they are held: ten
 * thousand at once, and then none for seconds.
 *
 * Idea: each lease starts its renewals at another phase of the interval.
 */
export class RenewalPhases {
  #next = 0;

  /**
   * Returns the share of the interval to wait before the first renewal. The share is at least half,
   * so that short work needs no renewal.
   */
  next(): number {
    const phase = 1 - this.#next / 2;
    this.#next = (this.#next + step) % 1;
    return phase;
  }
}

/** A renewal that a lease has started. */
interface Due extends SentRequest {
  readonly lease: HeldLease;
  readonly grant: Grant;
}

/**
 * Sends the renewals of leases to the store. perf (renew): renewals that start together are sent
 * together, if the store has `extendMany`.
 */
export class Renewals {
  readonly #clock: SteadyClock;
  readonly #store: OpenStore;
  #due: Due[] = [];

  constructor(clock: SteadyClock, store: OpenStore) {
    this.#clock = clock;
    this.#store = store;
  }

  add(due: Due): void {
    if (this.#due.length === 0) void resolved.then(() => this.#send());
    this.#due.push(due);
  }

  #send(): void {
    const due = this.#due;
    this.#due = [];
    const byTtl = new Map<number, Due[]>();
    for (const each of due) {
      const { ttlMs } = each.lease.terms;
      const others = byTtl.get(ttlMs);
      if (others === undefined) byTtl.set(ttlMs, [each]);
      else others.push(each);
    }
    for (const [ttlMs, some] of byTtl) {
      if (this.#store.extendMany !== undefined) this.#sendTogether(some, ttlMs);
      else for (const each of some) void this.#sendAlone(each, ttlMs);
    }
  }

  #sendTogether(some: readonly Due[], ttlMs: number): void {
    const grants = some.map(({ grant }) => grant);
    this.#store.extendMany?.(grants, ttlMs, (index, outcome, received) => {
      const each = some[index];
      if (each !== undefined) each.lease.onRenewal(outcome, each, received);
    });
  }

  async #sendAlone(due: Due, ttlMs: number): Promise<void> {
    let outcome: ExtendOutcome | undefined;
    try {
      outcome = await this.#store.extend(due.grant, ttlMs);
    } catch {}
    due.lease.onRenewal(outcome, due, this.#clock.now());
  }
}
