/** A clock that runs a little fast or slow, and that can be set or held. */
export class DriftingClock {
  readonly rate: number;
  #epochMs: number;
  #heldSinceMs: number | undefined;

  constructor(epochMs: number, rate: number) {
    this.#epochMs = epochMs;
    this.rate = rate;
  }

  /** What it shows at `realMs` of the world's time. */
  at(realMs: number): number {
    return this.#epochMs + (this.#heldSinceMs ?? realMs) * this.rate;
  }

  /** How much of the world's time passes until it shows `shownMs`. */
  realUntil(shownMs: number, realMs: number): number {
    return (shownMs - this.at(realMs)) / this.rate;
  }

  step(byMs: number): void {
    this.#epochMs += byMs;
  }

  /** Stands still, as a monotonic clock does while its machine is suspended. */
  hold(realMs: number): void {
    this.#heldSinceMs ??= realMs;
  }

  letGo(realMs: number): void {
    if (this.#heldSinceMs === undefined) return;
    this.#epochMs -= (realMs - this.#heldSinceMs) * this.rate;
    this.#heldSinceMs = undefined;
  }
}
