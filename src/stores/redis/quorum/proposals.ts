import type { Clock } from "../../../core/ports.ts";

/** A day: no clock in use is further ahead. */
const aheadUsMax = 86_400_000_000;

/**
 * A hybrid clock: the wall clock in microseconds, or one more than the greatest number seen or
 * proposed, whichever is greater. A client whose clock is behind catches up with what it sees, so
 * that nodes agree in one round trip; no safety rests on it while the nodes keep their counters.
 */
export class Proposals {
  readonly #clock: Clock;
  #last = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  next(): number {
    this.#last = Math.max(this.#clock.wallMs() * 1_000, this.#last + 1);
    return this.#last;
  }

  see(fence: number): void {
    if (fence <= this.#last) return;
    // What stands in a foreign client's value may end in a number, and be no fence at all.
    if (fence <= this.#clock.wallMs() * 1_000 + aheadUsMax) this.#last = fence;
  }
}
