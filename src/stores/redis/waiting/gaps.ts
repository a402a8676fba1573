import type { Clock } from "../../../core/ports.ts";

/**
 * The resources that this manager leaves free for a moment, so that clients of other libraries get
 * a chance: they see no queue and get no wake-up, and find a lock free only if they poll while it
 * is free. A gap begins with a release of ours, and with a wake-up that reports one of another
 * manager. No safety rests on it: a gap that is missed costs a foreign client one try.
 */
export class Gaps {
  readonly #clock: Clock;
  readonly #gapMs: number;
  /** When each gap ends. All are equally long, so the first entry is the first to end. */
  readonly #ends = new Map<string, number>();

  constructor(clock: Clock, gapMs: number) {
    this.#clock = clock;
    this.#gapMs = gapMs;
  }

  begin(resources: readonly string[]): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [resource, endMs] of this.#ends) {
      if (endMs > nowMs) break;
      this.#ends.delete(resource);
    }
    for (const resource of resources) {
      this.#ends.delete(resource);
      this.#ends.set(resource, nowMs + this.#gapMs);
    }
  }

  /** How long until the last gap of these ends; 0 if there is none. */
  leftMs(resources: readonly string[]): number {
    if (this.#ends.size === 0) return 0;
    let endMs = 0;
    for (const resource of resources) endMs = Math.max(endMs, this.#ends.get(resource) ?? 0);
    return Math.max(0, endMs - this.#clock.monotonicMs());
  }
}
