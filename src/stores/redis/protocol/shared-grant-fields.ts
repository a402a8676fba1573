import type { GrantFields } from "./grant.ts";
import { ShortOwners } from "./short-owners.ts";
import { driftMs, type StoreSettings } from "./store-settings.ts";

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
