import { hashTagOf } from "../../../clients/hash-slot.ts";
import { hashOf, mixed, type Hash } from "./hash.ts";

/**
 * Maps lock keys to groups by rendezvous hashing: a key belongs to the group with the highest
 * weight for it. A weight depends only on the key and the group's id, so adding or removing a group
 * moves only the keys it gains or loses. Keys with the same `{tag}` belong to the same group.
 */
export class Rendezvous {
  readonly #ids: readonly Hash[];

  /**
   * `ids` are in an order that all clients share. If two groups weigh the same, the order decides.
   */
  constructor(ids: readonly string[]) {
    this.#ids = ids.map(hashOf);
  }

  /** Returns the index of the key's group. */
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
