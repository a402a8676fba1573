/** As many as a whole number holds without loss. */
const digitsMax = 10;

/**
 * Owners of one manager are one base and a number, and there may be very many leases: the number is
 * enough to remember. An owner with a label, or of another make, is kept as it is.
 */
export class ShortOwners {
  /** Drawn from the first owner, and never changed: what is remembered rests on it. */
  #base: string | undefined;
  /** The last one that was shortened, which is often the next one asked for. */
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

/** The number to the base 36 that is left of `text`; -1 where it is not written as we would. */
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
