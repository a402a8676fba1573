const firstPauseMs = 50;
const pauseMsMax = 1_000;

/**
 * How often a node that does not answer, or cannot be reached, is asked all the same: at growing
 * pauses, with whatever is to be sent at that moment, until it is heard from.
 */
export class Probing {
  #pauseMs = firstPauseMs;
  #nextMs = -Infinity;

  /** Whether it is to be left alone now. Where not, whoever asked is the probe. */
  holdsBack(nowMs: number): boolean {
    if (nowMs < this.#nextMs) return true;
    this.#nextMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs * 2);
    return false;
  }

  heard(): void {
    this.#pauseMs = firstPauseMs;
    this.#nextMs = -Infinity;
  }
}
