/** Limit: so many base-36 digits always fit into a safe integer. */
const digitsMax = 10;

/**
 * Stores owners in short form. perf (held): the owners of one manager share a base, so a number is
 * enough for each lease. An owner with a label, or of another format, is stored unchanged.
 */
export class ShortOwners {
  /** Taken from the first owner, and never changed: the stored numbers depend on it. */
  #base: string | undefined;
  /** Last owner that was shortened. perf: often the next one to restore. */
  #last = "";
  #lastNumber = -1;

  shorten(owner: string): string | number {
    this.#base ??= owner.slice(0, owner.lastIndexOf("-") + 1);
    const number = owner.startsWith(this.#base) ? countIn(owner, this.#base.length) : -1;
    if (number < 0) return owner;
    this.#last = owner;
    this.#lastNumber = number;
    return number;
  }

  restore(short: string | number): string {
    if (typeof short === "string") return short;
    return short === this.#lastNumber ? this.#last : `${this.#base}${short.toString(36)}`;
  }
}

/**
 * Parses the rest of `text` as a base-36 number; -1 if `toString(36)` would write it differently.
 */
function countIn(text: string, from: number): number {
  if (from === text.length || text.length - from > digitsMax) return -1;
  let number = 0;
  for (let index = from; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 122 ? code - 87 : -1;
    if (digit < 0 || (number === 0 && digit === 0)) return -1;
    number = number * 36 + digit;
  }
  return number;
}
