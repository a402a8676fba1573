export interface Entry {
  readonly owner: string;
  readonly fence: bigint;
  readonly expiresMs: number;
}

/** How many entries each new one looks at: more than one, or the expired could outgrow the rest. */
const looksPerEntry = 2;

/**
 * The locks of one memory store. An expired one is removed when somebody asks for it, and bit by
 * bit as new ones come in: so names that nobody uses again do not pile up, without a timer and
 * without a moment at which all of them are looked at.
 */
export class Entries {
  readonly #byResource = new Map<string, Entry>();
  #sweep: Iterator<[string, Entry]> = this.#byResource.entries();

  get size(): number {
    return this.#byResource.size;
  }

  /** The entry of `resource`, unless it has expired. */
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

  /** Those that have not expired. */
  live(nowMs: number): readonly (readonly [string, Entry])[] {
    return [...this.#byResource].filter(([, entry]) => entry.expiresMs > nowMs);
  }

  delete(resource: string): void {
    this.#byResource.delete(resource);
  }

  /** A Map's iterator stays good while entries come and go; at its end it starts again. */
  #lookAtNext(nowMs: number): void {
    const next = this.#sweep.next();
    if (next.done === true) this.#sweep = this.#byResource.entries();
    else this.get(next.value[0], nowMs);
  }
}
