/** Sorted set of a server. Members are ordered by score, and by name if scores are equal. */
export class SortedSet {
  readonly #scores: Map<string, number>;
  #ordered: readonly string[] | undefined;

  constructor(scores: Iterable<readonly [string, number]> = []) {
    this.#scores = new Map(scores);
  }

  get size(): number {
    return this.#scores.size;
  }

  score(member: string): number | undefined {
    return this.#scores.get(member);
  }

  add(member: string, score: number): void {
    if (this.#scores.get(member) === score) return;
    this.#scores.set(member, score);
    this.#ordered = undefined;
  }

  remove(member: string): void {
    if (this.#scores.delete(member)) this.#ordered = undefined;
  }

  /** Returns the number of scores of at least `from` and below `to`. */
  count(from: number, to: number): number {
    let count = 0;
    for (const score of this.#scores.values()) if (score >= from && score < to) count += 1;
    return count;
  }

  members(): readonly string[] {
    this.#ordered ??= [...this.#scores]
      .toSorted(([one, a], [other, b]) => a - b || (one < other ? -1 : 1))
      .map(([member]) => member);
    return this.#ordered;
  }

  /** Returns members and scores in the format of `ZRANGE 0 -1 WITHSCORES`. */
  pairs(): readonly string[] {
    return this.members().flatMap((member) => [member, String(this.score(member))]);
  }

  copy(): SortedSet {
    return new SortedSet(this.#scores);
  }
}
