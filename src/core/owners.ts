import type { Random } from "./ports.ts";
import type { Holder } from "./report/holder.ts";

/** Prefix of every owner. Values of other clients do not have it. */
const mark = "hf:";

/** Form of an owner: mark, 22 random characters, `-`, counter in base 36, `@` and encoded label. */
const shape = /^hf:[\w-]{22}-[1-9a-z][0-9a-z]{0,10}(?:@[\w.!~*'()%-]+)?$/;

/**
 * Creates owners: unique values that attempts write in the store. An owner has a random base, which
 * is drawn once per manager, a counter, and the label if there is one.
 *
 * Each attempt gets a new owner, even if the same call sends it. Otherwise a late release of an
 * earlier attempt would delete the lock of a later attempt.
 */
export class Owners {
  readonly #base: string;
  #count = 0;
  /** perf (sequential): the last label with its encoding, because most calls have one label. */
  #label: string | undefined;
  #encoded = "";

  constructor(random: Random) {
    this.#base = mark + random.uniqueBase();
  }

  /** True if an attempt of this manager wrote `owner`. */
  isOurs(owner: string): boolean {
    return owner.startsWith(`${this.#base}-`);
  }

  /** Returns the holder, with `self: true` if this manager holds the resource. */
  withSelf(holder: Holder | undefined): Holder | undefined {
    return holder !== undefined && this.isOurs(holder.owner) ? { ...holder, self: true } : holder;
  }

  next(label: string | undefined): string {
    this.#count += 1;
    const unique = `${this.#base}-${this.#count.toString(36)}`;
    // The wire format uses `|` and spaces as separators, so the label is encoded without them.
    if (label === undefined || label === "") return unique;
    if (label !== this.#label) {
      this.#encoded = encodeURIComponent(label);
      this.#label = label;
    }
    return `${unique}@${this.#encoded}`;
  }
}

/** Returns the label inside an owner; undefined if it has none. */
export function labelOf(owner: string): string | undefined {
  const at = owner.indexOf("@");
  if (at < 0) return undefined;
  try {
    return decodeURIComponent(owner.slice(at + 1));
  } catch {
    return undefined;
  }
}

/** True if Holdfast made this value of a store, and not a foreign client. */
export function isOwner(value: string): boolean {
  return shape.test(value);
}
