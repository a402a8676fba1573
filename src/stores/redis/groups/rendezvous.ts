import { hashTagOf } from "../cluster-dialect.ts";
import { hashOf, mixed, type Hash } from "./hash.ts";

/**
 * Which group a lock key lives in: the one with the highest weight for it (rendezvous hashing).
 * Each group's weight depends on its own id alone, so a group that comes or goes moves only the
 * keys it gains or loses. Keys with the same `{tag}`, as in a Redis Cluster, live together.
 */
export class Rendezvous {
  readonly #ids: readonly Hash[];

  /** The ids in the order in which ties are broken: all clients must give the same. */
  constructor(ids: readonly string[]) {
    this.#ids = ids.map(hashOf);
  }

  /** The index of the key's group. */
  homeOf(key: string): number {
    if (this.#ids.length === 1) return 0;
    const of = hashOf(hashTagOf(key) ?? key);
    let home = 0;
    let highest = -1;
    let lowest = -1;
    for (const [index, id] of this.#ids.entries()) {
      const high = mixed(of.high ^ id.high);
      if (high < highest) continue;
      const low = mixed((of.low ^ id.low) + high);
      if (high === highest && low <= lowest) continue;
      home = index;
      highest = high;
      lowest = low;
    }
    return home;
  }
}
