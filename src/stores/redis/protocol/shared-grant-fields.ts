import { driftMs, type StoreSettings } from "./store-settings.ts";

/** Fields that all grants of one quorum with the same TTL share. perf (held): stored only once. */
export interface GrantFields {
  /** Identity of the quorum that granted. */
  readonly home: object;
  readonly prefix: string;
  readonly owners: ShortOwners;
  readonly ttlMs: number;
  readonly validityMs: number;
  /** Longest TTL that the keys may have: more than `ttlMs` after an extend to a longer TTL. */
  readonly lifeMs: number;
  /** Monotonic time at which a successful extend to a longer TTL ends; 0 if there was none. */
  readonly longUntilMs: number;
  /** True after a vote was lost: a key may end sooner there than the lease does. */
  readonly lifeInDoubt: boolean;
}

/** Makes the fields that grants share. perf (held): one object while the TTL is the same. */
export class SharedGrantFields {
  readonly #options: StoreSettings;
  readonly #owners = new ShortOwners();
  #last: GrantFields | undefined;

  constructor(options: StoreSettings) {
    this.#options = options;
  }

  of(ttlMs: number): GrantFields {
    if (this.#last?.ttlMs !== ttlMs) {
      const { prefix } = this.#options;
      const owners = this.#owners;
      const validityMs = ttlMs - driftMs(this.#options, ttlMs);
      const life = { lifeMs: ttlMs, longUntilMs: 0, lifeInDoubt: false };
      this.#last = { home: this, prefix, owners, ttlMs, validityMs, ...life };
    }
    return this.#last;
  }
}

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
