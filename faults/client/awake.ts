/**
 * Interval for counting the time in which this process runs: a stopped process must not count as
 * late. A tick that comes late counts as one tick.
 */
const tickMs = 50;

export class AwakeTime {
  #ticks = 0;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners = new Set<() => void>();

  constructor() {
    this.#timer = setInterval(() => {
      this.#ticks += 1;
      for (const listener of this.#listeners) listener();
    }, tickMs);
  }

  /** Calls `listener` at each tick, until the returned function is called. */
  onTick(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  get ms(): number {
    return this.#ticks * tickMs;
  }

  /** Calls `onOverdue` once if `promise` has not settled after `limitMs` awake. */
  async bound<Result>(
    promise: Promise<Result>,
    limitMs: number,
    onOverdue: (awakeMs: number) => void,
  ): Promise<Result> {
    const beganMs = this.ms;
    const timer = setInterval(() => {
      if (this.ms - beganMs <= limitMs) return;
      clearInterval(timer);
      onOverdue(this.ms - beganMs);
    }, tickMs);
    try {
      return await promise;
    } finally {
      clearInterval(timer);
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
