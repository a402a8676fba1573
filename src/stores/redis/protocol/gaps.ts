import type { Clock } from "../../../core/ports.ts";

/**
 * Resources that this manager leaves free for a moment, so that clients of other libraries can get
 * them. Those have no queue entry and get no notification: they find a lock free only if they poll
 * at the right moment. A gap begins with a release of this manager, or with a notification of
 * another manager's release. Safety does not depend on it: a missed gap costs a client one try.
 */
export class Gaps {
  readonly #clock: Clock;
  readonly #gapMs: number;
  /** Monotonic end of each gap. All gaps are equally long, so the first entry ends first. */
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

  /** Returns the time until the last gap of these resources ends; 0 if there is none. */
  leftMs(resources: readonly string[]): number {
    if (this.#ends.size === 0) return 0;
    let endMs = 0;
    for (const resource of resources) endMs = Math.max(endMs, this.#ends.get(resource) ?? 0);
    return Math.max(0, endMs - this.#clock.monotonicMs());
  }
}
