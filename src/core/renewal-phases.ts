/** The golden ratio: each one falls into a gap between those before it, however many there are. */
const step = (Math.sqrt(5) - 1) / 2;

/**
 * Leases that were taken together would be renewed together for as long as they are held: ten
 * thousand at once, and then none for seconds. So each has a moment of its own in the interval.
 */
export class RenewalPhases {
  #next = 0;

  /** How much of the interval to let pass, once: at least half, so that short work needs none. */
  next(): number {
    const phase = 1 - this.#next / 2;
    this.#next = (this.#next + step) % 1;
    return phase;
  }
}
