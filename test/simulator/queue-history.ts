import { knownScripts } from "../../src/simulator/node/scripts.ts";
import type { SimulatedServer } from "../../src/simulator/node/server.ts";
import { encode } from "../../src/stores/redis/commands/encode.ts";
import {
  clusterMode,
  fencedMode,
  plainMode,
  type Mode,
} from "../../src/stores/redis/commands/modes.ts";
import type { Operation, Place, PlaceLeft } from "../../src/stores/redis/commands/operation.ts";
import type { SeededRandom } from "../../src/simulator/seeded-random.ts";

export const locks = ["a", "b", "c"] as const;
export const queueOf = (lock: string): string => `holdfast:waiters:${lock}`;
/** The second base differs from the first only in front of the last "-w" of a waiter's id. */
export const bases = ["m1", "m1-w2", "m2"] as const;

/** One command for both sides. Each side has its own name for the script. */
export interface Step {
  readonly kind: string;
  readonly script: string | undefined;
  readonly words: readonly string[];
}

const scriptNames = ["fenced", "fenced", "fenced", "plain", "plain", "cluster", "inspect"] as const;
/** As the product encodes them, but with one name for the queues of all scripts. */
const encodings: Readonly<Record<string, Mode>> = {
  fenced: {
    ...fencedMode({ admission: "off", wireFormat: "1:crc16:1024", ttlMaxMs: 90_000_000 }),
    releases: undefined,
  },
  plain: plainMode,
  cluster: { ...clusterMode, queueOf, releases: undefined },
};
/** Long enough that no lock expires by itself, on either side. */
const ttlMs = 36_000_000;

/**
 * Draws commands that several clients might send, based on the present holders, so that they
 * collide.
 */
export class QueueHistory {
  readonly #server: SimulatedServer;
  readonly #random: SeededRandom;
  readonly #tickets = new Map<string, number>();
  #proposal = 1_000;

  constructor(server: SimulatedServer, random: SeededRandom) {
    this.#server = server;
    this.#random = random;
  }

  next(): Step {
    const random = this.#random;
    const lock = random.pick(locks);
    if (random.chance(0.06)) return { kind: "lock gone", script: undefined, words: ["DEL", lock] };
    if (random.chance(0.01)) {
      return { kind: "queue gone", script: undefined, words: ["DEL", queueOf(lock)] };
    }
    if (random.chance(0.04)) {
      const words = [random.pick(["SADD", "SREM"]), "test:deaf", random.pick(bases)];
      return { kind: "deaf", script: undefined, words };
    }
    const script = random.pick(scriptNames);
    if (!knownScripts.some(({ name }) => name === script)) throw new Error(`no ${script}`);
    return { kind: script, script, words: this.#wordsOf(script) };
  }

  #wordsOf(script: string): string[] {
    const encoding = encodings[script];
    if (encoding === undefined) {
      const [key = "a"] = this.#keys();
      return ["2", key, queueOf(key)];
    }
    const again = this.#random.chance(0.4) ? this.#repeatedAttempt() : undefined;
    const operations = Array.from({ length: this.#random.integer(1, 5) }, () => this.#operation());
    return encode(encoding, again === undefined ? operations : [again], false).slice(2);
  }

  #operation(): Operation {
    const keys = this.#keys();
    const owner = this.#owner(keys);
    const fence = this.#number();
    switch (this.#random.pick(["W", "W", "W", "A", "R", "P", "T"] as const)) {
      case "W":
        return { kind: "acquire", keys, owner, ttlMs, fence, place: this.#place() };
      case "A":
        return { kind: "acquire", keys, owner, ttlMs, fence, place: undefined };
      case "T":
        return { kind: "touch", keys, owner, ttlMs, fence };
      case "R":
        return { kind: "release", keys, owner, fence: 0, left: "" };
      default:
        return { kind: "release", keys, owner, fence: 0, left: this.#placeLeft() };
    }
  }

  /** Returns the most common attempt of a waiter: alone, with its queue entry, for a held lock. */
  #repeatedAttempt(): Operation | undefined {
    const lock = this.#random.pick(locks);
    const members = this.#server.data.sortedSet(queueOf(lock))?.pairs() ?? [];
    const waiters = members.flatMap((id, at) => {
      return at % 2 === 0 && !id.startsWith("~") ? [{ id, ticket: Number(members[at + 1]) }] : [];
    });
    if (waiters.length === 0 || this.#server.data.get(lock) === undefined) return undefined;
    const place = { ...this.#random.pick(waiters), tenures: this.#block() };
    const fence = this.#number();
    return { kind: "acquire", keys: [lock], owner: "o5", ttlMs, fence, place };
  }

  #keys(): string[] {
    const { length } = this.#random.chance(0.7) ? [1] : [1, 2];
    const chosen = Array.from({ length }, () => this.#random.pick(locks));
    return [...new Set(chosen)].toSorted();
  }

  /** Returns the present owner half of the time, so that releases often succeed. */
  #owner(keys: readonly string[]): string {
    const value = this.#server.data.get(keys[0] ?? "");
    if (value !== undefined && this.#random.chance(0.5)) return value.split("|")[0] ?? "";
    return this.#random.pick(["o1", "o2", "o3", "o4"]);
  }

  #number(): number {
    this.#proposal += this.#random.integer(0, 3);
    return this.#proposal;
  }

  #id(): string {
    if (this.#random.chance(0.02)) return "no-listener-at-all";
    return `${this.#random.pick(bases)}-w${this.#random.integer(1, 3)}`;
  }

  #block(): number {
    return this.#random.pick([1, 2, 32]);
  }

  /**
   * A waiter has one ticket for its whole wait. Some share a ticket, and some have a very great
   * one.
   */
  #place(): Place {
    const id = this.#id();
    if (this.#random.chance(0.1)) this.#tickets.delete(id);
    const great = this.#random.chance(0.1) ? 9_007_199_254_740_000 : 1_000;
    const ticket = this.#tickets.get(id) ?? great + this.#random.integer(0, 6);
    this.#tickets.set(id, ticket);
    return { ticket, id, tenures: this.#block() };
  }

  #placeLeft(): PlaceLeft {
    return `${this.#random.pick(["-", "-", "="] as const)}${this.#id()}`;
  }
}
