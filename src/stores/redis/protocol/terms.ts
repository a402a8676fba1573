import { driftMs, type ResolvedStoreOptions } from "../options.ts";
import type { GrantTerms } from "./grant.ts";
import { ShortOwners } from "./short-owners.ts";

/** Makes the fields that grants share. perf (held): one object while the TTL is the same. */
export class Terms {
  readonly #options: ResolvedStoreOptions;
  readonly #owners = new ShortOwners();
  #last: GrantTerms | undefined;

  constructor(options: ResolvedStoreOptions) {
    this.#options = options;
  }

  of(home: object, ttlMs: number): GrantTerms {
    if (this.#last?.ttlMs !== ttlMs) {
      const { prefix } = this.#options;
      const owners = this.#owners;
      const validityMs = ttlMs - driftMs(this.#options, ttlMs);
      const life = { lifeMs: ttlMs, longUntilMs: 0, lifeInDoubt: false };
      this.#last = { home, prefix, owners, ttlMs, validityMs, ...life };
    }
    return this.#last;
  }
}
