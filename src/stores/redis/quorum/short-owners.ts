/**
 * Owners of one manager are one base and a number, and there may be very many leases: the number is
 * enough to remember. An owner with a label, or of another make, is kept as it is.
 */
export class ShortOwners {
  /** Drawn from the first owner, and never changed: what is remembered rests on it. */
  #base: string | undefined;

  shorten(owner: string): string | number {
    if (owner.includes("@")) return owner;
    this.#base ??= owner.slice(0, owner.lastIndexOf("-") + 1);
    const number = Number.parseInt(owner.slice(this.#base.length), 36);
    return this.restore(number) === owner ? number : owner;
  }

  restore(short: string | number): string {
    return typeof short === "string" ? short : `${this.#base}${short.toString(36)}`;
  }
}
