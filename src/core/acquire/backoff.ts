import type { Random } from "../ports.ts";
import type { AttemptOutcome } from "../store.ts";

export type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/**
 * Limit for pauses of the first waiter in the store's queue. If the notification of a release is
 * lost, the waiter sends its next attempt after this time.
 */
const firstPauseMsMax = 1_000;
/**
 * Limit for pauses of the other waiters. Must be shorter than the life of a queue entry in the
 * store, because each attempt renews the entry of its waiter.
 */
const pauseMsMax = 4_000;
/**
 * Number of first waiters in the queue that send an attempt when the holder's lease should be over.
 */
const eagerWaiters = 3;
/** Delay between two of these attempts, so that they do not collide. */
const eagerStepMs = 10;

/**
 * Pauses of one call between its attempts.
 *
 * A pause is random if the store does not notify waiters, or if rival attempts each locked some of
 * the nodes. It lasts from the minimum up to three times the previous pause, or up to the maximum
 * (decorrelated jitter). Rivals that once attempted at the same moment then drift apart.
 *
 * Any other pause lasts until the holder's lease should be over, but not longer than a limit that
 * grows with the number of waiters in front: a notification usually ends the pause before.
 */
export class Backoff {
  readonly #random: Random;
  readonly #minMs: number;
  readonly #maxMs: number;
  #previousMs: number;

  constructor(random: Random, minMs: number, maxMs: number) {
    this.#random = random;
    this.#minMs = minMs;
    this.#maxMs = maxMs;
    this.#previousMs = minMs;
  }

  /** Returns a random pause between the minimum and three times the previous pause. */
  nextMs(): number {
    const ceilingMs = Math.min(this.#maxMs, this.#previousMs * 3);
    const drawnMs = this.#minMs + this.#random.fraction() * (ceilingMs - this.#minMs);
    this.#previousMs = drawnMs;
    return drawnMs;
  }

  /**
   * Returns the pause after a refusal. While a client of another library holds the resource, the
   * first waiter polls at short intervals, because such a client notifies no waiters.
   */
  pauseMsAfter(refused: Refused, isNotified: boolean): number {
    const retryInMs = refused.kind === "held" ? refused.retryInMs : undefined;
    if (!isNotified || retryInMs === undefined) return this.nextMs();
    const spread = 0.75 + this.#random.fraction() / 2;
    if (isFirstBehindForeigner(refused)) return Math.min(retryInMs + spread, this.#minMs * spread);
    const isSplit = refused.kind === "held" && refused.split === true;
    const rank = (refused.kind === "held" ? refused.rank : undefined) ?? 0;
    const recheckMs = refused.kind === "held" ? refused.recheckMs : undefined;
    const firstMs = recheckMs ?? Math.min(this.#maxMs, firstPauseMsMax);
    const everyMs = Math.min(firstMs * (rank + 1), pauseMsMax);
    const mostMs = isSplit ? this.nextMs() : everyMs * spread;
    // The resource is free, but reserved for the first waiter for a moment. The store notifies few
    // waiters when the reservation ends, so all of them send an attempt then.
    const isFree = refused.kind === "held" && refused.holder === undefined;
    if (rank >= eagerWaiters && !isFree) return mostMs;
    const afterMs = Math.min(rank, eagerWaiters) * eagerStepMs;
    return Math.min(retryInMs + spread * (1 + afterMs), mostMs);
  }
}

function isFirstBehindForeigner(refused: Refused): boolean {
  return refused.kind === "held" && refused.rank === 0 && refused.holder?.foreign === true;
}
