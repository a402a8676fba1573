import type { Random } from "../ports.ts";
import type { AttemptOutcome } from "../store.ts";

export type Refused = Exclude<AttemptOutcome, { kind: "granted" }>;

/** Longest pause between the attempts of the first waiter. Covers lost notifications. */
const firstPauseMsMax = 1_000;
/** Longest pause of the waiters behind it. The store keeps a queue entry for longer than this. */
const pauseMsMax = 4_000;
/** Number of waiters that send an attempt when the holder's lease should be over. */
const eagerWaiters = 3;
/** Delay of the second of them after the first, and of the third after the second. */
const eagerStepMs = 10;

/**
 * Pauses of one call between its attempts.
 *
 * If the store does not notify waiters, or if rivals each have some nodes, a pause is random
 * (decorrelated jitter): between the minimum and three times the previous one, up to the maximum.
 * Rivals that once attempted at the same moment then drift apart. Otherwise a pause ends with the
 * holder's lease, with a limit that grows with the rank of the waiter.
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

  /** Returns a random pause. */
  nextMs(): number {
    const ceilingMs = Math.min(this.#maxMs, this.#previousMs * 3);
    const drawnMs = this.#minMs + this.#random.fraction() * (ceilingMs - this.#minMs);
    this.#previousMs = drawnMs;
    return drawnMs;
  }

  /**
   * Returns the pause after a refusal. The first waiter polls while a client of another library
   * holds the resource.
   */
  pauseMsAfter(refused: Refused, isNotified: boolean): number {
    const retryInMs = refused.kind === "held" ? refused.retryInMs : undefined;
    if (!isNotified || retryInMs === undefined) return this.nextMs();
    const spread = 0.75 + this.#random.fraction() / 2;
    if (isFirstBehindForeigner(refused)) return Math.min(retryInMs + spread, this.#minMs * spread);
    const isSplit = refused.kind === "held" && refused.split === true;
    const rank = (refused.kind === "held" ? refused.rank : undefined) ?? 0;
    const everyMs = Math.min(Math.min(this.#maxMs, firstPauseMsMax) * (rank + 1), pauseMsMax);
    const mostMs = isSplit ? this.nextMs() : everyMs * spread;
    // Free, but reserved for the first waiter. Few are notified when that ends, so all retry then.
    const isFree = refused.kind === "held" && refused.holder === undefined;
    if (rank >= eagerWaiters && !isFree) return mostMs;
    const afterMs = Math.min(rank, eagerWaiters) * eagerStepMs;
    return Math.min(retryInMs + spread * (1 + afterMs), mostMs);
  }
}

function isFirstBehindForeigner(refused: Refused): boolean {
  return refused.kind === "held" && refused.rank === 0 && refused.holder?.foreign === true;
}
