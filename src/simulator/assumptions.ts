/** Time span in which a promise does not hold because a fault broke one of its assumptions. */
export interface Break {
  readonly promise: "exclusion" | "fences";
  readonly why: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/**
 * Records the time spans in which faults of a world broke the assumptions of the protocol.
 *
 * Mutual exclusion is excused while a broken assumption can still do harm. Fences are compared only
 * within one epoch. A new epoch starts when counters are lost in a way that the protocol does not
 * cover.
 */
export class Assumptions {
  readonly breaks: Break[] = [];

  breakExclusion(fromMs: number, untilMs: number, why: string): void {
    this.breaks.push({ promise: "exclusion", why, fromMs, untilMs });
  }

  breakFences(atMs: number, why: string): void {
    this.breaks.push({ promise: "fences", why, fromMs: atMs, untilMs: atMs });
  }

  exclusionHoldsAt(atMs: number): boolean {
    return this.#of("exclusion").every(({ fromMs, untilMs }) => atMs < fromMs || atMs > untilMs);
  }

  /** True if no break of exclusion overlaps the time span. */
  exclusionHeld(fromMs: number, untilMs: number): boolean {
    return this.#of("exclusion").every((each) => each.untilMs < fromMs || each.fromMs > untilMs);
  }

  /** Returns the number of the fence epoch at `atMs`. */
  fenceEpoch(atMs: number): number {
    return this.#of("fences").filter(({ fromMs }) => fromMs <= atMs).length;
  }

  get fencesHeld(): boolean {
    return this.#of("fences").length === 0;
  }

  #of(promise: Break["promise"]): Break[] {
    return this.breaks.filter((each) => each.promise === promise);
  }
}
