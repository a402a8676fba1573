import type { Random } from "../ports.ts";

/**
 * Draws pauses with decorrelated jitter: each is between the minimum and three times the previous
 * one, up to the maximum. Rivals that once attempted at the same moment then drift apart.
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

  nextMs(): number {
    const ceilingMs = Math.min(this.#maxMs, this.#previousMs * 3);
    const drawnMs = this.#minMs + this.#random.fraction() * (ceilingMs - this.#minMs);
    this.#previousMs = drawnMs;
    return drawnMs;
  }
}
