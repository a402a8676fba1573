/** Golden ratio: each phase falls into one of the widest gaps between the earlier ones. */
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
   * Returns the share of the interval to wait before the first renewal. At least half, so that
   * short work needs no renewal.
   */
  next(): number {
    const phase = 1 - this.#next / 2;
    this.#next = (this.#next + step) % 1;
    return phase;
  }
}
