export interface Entry {
  readonly owner: string;
  readonly fence: bigint;
  readonly expiresMs: number;
}

/** Number of entries to check for each new entry. With only one, expired entries could pile up. */
const looksPerEntry = 2;

/**
 * The locks of one memory store. An expired entry is removed when it is read. `set` also checks two
 * other entries, so that expired entries of names that are not used again do not pile up. This
 * needs no timer, and no scan of all entries at once.
 */
export class Entries {
  readonly #byResource = new Map<string, Entry>();
  #sweep: Iterator<[string, Entry]> = this.#byResource.entries();

  get size(): number {
    return this.#byResource.size;
  }

  /** Returns the entry of `resource`, unless it has expired. */
  get(resource: string, nowMs: number): Entry | undefined {
    const entry = this.#byResource.get(resource);
    if (entry === undefined || entry.expiresMs > nowMs) return entry;
    this.#byResource.delete(resource);
    return undefined;
  }

  set(resource: string, entry: Entry, nowMs: number): void {
    this.#byResource.set(resource, entry);
    for (let look = 0; look < looksPerEntry; look += 1) this.#lookAtNext(nowMs);
  }

  /** Returns the entries that have not expired. */
  live(nowMs: number): readonly (readonly [string, Entry])[] {
    return [...this.#byResource].filter(([, entry]) => entry.expiresMs > nowMs);
  }

  delete(resource: string): void {
    this.#byResource.delete(resource);
  }

  /**
   * Removes the next entry if it has expired. The iterator of a Map stays valid while entries
   * change.
   */
  #lookAtNext(nowMs: number): void {
    const next = this.#sweep.next();
    if (next.done === true) this.#sweep = this.#byResource.entries();
    else this.get(next.value[0], nowMs);
  }
}
