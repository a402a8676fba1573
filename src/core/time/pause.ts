import type { CancelTimer, Clock } from "../ports.ts";

/**
 * A pause that can be ended early. A call of `end` while nothing pauses has no effect on the next
 * pause. The pending timer keeps the process running.
 */
export class Pause {
  readonly #clock: Clock;
  #cancel: CancelTimer | undefined;
  #resolve: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, or when `end` is called. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#cancel = this.#clock.setTimer(ms, true, () => this.end());
    });
  }

  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#resolve?.();
    this.#resolve = undefined;
  }
}
