/** Clock that runs at its own rate and can be stepped or held. */
export class DriftingClock {
  readonly rate: number;
  #epochMs: number;
  #heldSinceMs: number | undefined;

  constructor(epochMs: number, rate: number) {
    this.#epochMs = epochMs;
    this.rate = rate;
  }

  /** Returns the time this clock shows at `realMs` of the world's time. */
  at(realMs: number): number {
    return this.#epochMs + (this.#heldSinceMs ?? realMs) * this.rate;
  }

  /** Returns how much of the world's time passes until this clock shows `shownMs`. */
  realUntil(shownMs: number, realMs: number): number {
    return (shownMs - this.at(realMs)) / this.rate;
  }

  step(byMs: number): void {
    this.#epochMs += byMs;
  }

  /** Stops the clock, as a suspended machine stops its monotonic clock. */
  hold(realMs: number): void {
    this.#heldSinceMs ??= realMs;
  }

  letGo(realMs: number): void {
    if (this.#heldSinceMs === undefined) return;
    this.#epochMs -= (realMs - this.#heldSinceMs) * this.rate;
    this.#heldSinceMs = undefined;
  }
}
