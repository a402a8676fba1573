/** When, and why, a promise did not have to be kept. */
export interface Break {
  readonly promise: "exclusion" | "fences";
  readonly why: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/**
 * What the protocol assumes, and where a world broke it. Exclusion is excused for the stretch in
 * which a broken assumption can still do harm. Fences are only ever compared within an epoch: the
 * stretch between two losses of counters that no rule of the protocol covers.
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

  /** Whether nothing was broken at any time between the two. */
  exclusionHeld(fromMs: number, untilMs: number): boolean {
    return this.#of("exclusion").every((each) => each.untilMs < fromMs || each.fromMs > untilMs);
  }

  /** Number of the epoch that `atMs` lies in. */
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
