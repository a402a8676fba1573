import type { Random } from "./ports.ts";

/**
 * Decorrelated jitter: each pause is drawn between the least and three times the one before, so
 * that rivals who once met at the same moment do not go on meeting.
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
