import { asked } from "../asked.ts";
import type { SentRequest } from "./doubt.ts";
import type { HeldLease } from "./held-lease.ts";
import type { Instant, SteadyClock } from "../ports.ts";
import type { ExtendOutcome, Grant, OpenStore } from "../store.ts";
import { now } from "../time/validity.ts";

/** Used instead of `queueMicrotask`, which fake timers of a test replace. */
const turn = Promise.resolve();

/** A renewal that a lease has started. */
interface Due extends SentRequest {
  readonly lease: HeldLease;
  readonly grant: Grant;
}

/**
 * Sends the renewals of leases to the store. perf (renew): those that start together are sent
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

  add(lease: HeldLease, grant: Grant, started: Instant, doubts: number): void {
    if (this.#due.length === 0) void turn.then(() => this.#ask());
    this.#due.push({ lease, grant, started, doubts });
  }

  #ask(): void {
    const due = this.#due;
    this.#due = [];
    const byTtl = new Map<number, Due[]>();
    for (const each of due) {
      const { ttlMs } = each.lease;
      const others = byTtl.get(ttlMs);
      if (others === undefined) byTtl.set(ttlMs, [each]);
      else others.push(each);
    }
    for (const [ttlMs, some] of byTtl) {
      if (this.#store.extendMany !== undefined) this.#askTogether(some, ttlMs);
      else for (const each of some) this.#askAlone(each, ttlMs);
    }
  }

  #askTogether(some: readonly Due[], ttlMs: number): void {
    const grants = some.map(({ grant }) => grant);
    this.#store.extendMany?.(grants, ttlMs, (place, outcome, heard) => {
      const each = some[place];
      if (each !== undefined) tell(each, outcome, heard);
    });
  }

  #askAlone(each: Due, ttlMs: number): void {
    asked(() => this.#store.extend(each.grant, ttlMs)).then(
      (outcome) => tell(each, outcome, now(this.#clock)),
      () => tell(each, undefined, now(this.#clock)),
    );
  }
}

function tell(due: Due, outcome: ExtendOutcome | undefined, heard: Instant): void {
  due.lease.renewalHeard(outcome, due, heard);
}
