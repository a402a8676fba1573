import { knownScripts } from "../../src/simulator/node/scripts.ts";
import type { SimulatedServer } from "../../src/simulator/node/server.ts";
import { batchCall, type BatchPart } from "../../src/stores/redis/batch.ts";
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

const scriptNames = [
  "batch",
  "batch",
  "batch",
  "plain-batch",
  "plain-batch",
  "plain-batch",
  "acquire",
  "plain-acquire",
  "release",
  "cluster-acquire",
  "cluster-release",
  "inspect",
];
const deployment = ["0", "off", "1:crc16:1024", "90000000"];
/** Long enough that no lock expires by itself, on either side. */
const ttl = "36000000";

/**
 * Draws commands that several clients might send, based on the present holders, so that they
 * collide.
 */
export class QueueHistory {
  readonly #server: SimulatedServer;
  readonly #random: SeededRandom;
  readonly #tickets = new Map<string, string>();
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
    const keys = this.#keys();
    const queues = keys.map(queueOf);
    const call = (all: readonly string[], ...args: readonly string[]): string[] => [
      String(all.length),
      ...all,
      ...args,
    ];
    switch (script) {
      case "batch":
        return this.#batch(true);
      case "plain-batch":
        return this.#batch(false);
      case "acquire": {
        const all = ["holdfast:node", ...keys, ...queues];
        return call(all, ...deployment, this.#owner(keys), ...this.#terms(keys, true));
      }
      case "plain-acquire":
        return call([...keys, ...queues], this.#owner(keys), ttl);
      case "release":
        return call([...keys, ...queues], this.#owner(keys));
      case "cluster-acquire": {
        const counters = keys.map((key) => `holdfast:{${key}}:fence`);
        const place = this.#random.chance(0.7) ? [...this.#place(), this.#block()] : [];
        const args = [this.#owner(keys), ttl, this.#number(), ttl, ...place];
        return call([...keys, ...counters, ...queues], ...args);
      }
      case "cluster-release":
        return call([...keys, ...queues], this.#owner(keys), this.#placeLeft());
      default:
        return call([keys[0] ?? "a", queues[0] ?? ""]);
    }
  }

  #batch(fenced: boolean): string[] {
    const again = this.#random.chance(0.4) ? this.#asksAgain(fenced) : undefined;
    if (again !== undefined) return this.#called([again], fenced);
    const parts = Array.from({ length: this.#random.integer(1, 5) }, (): BatchPart => {
      const keys = this.#keys();
      const code = this.#random.pick(["W", "W", "W", "A", "R", "P", "T"] as const);
      const args = [this.#owner(keys)];
      if (code === "P") args.push(this.#placeLeft());
      else if (code !== "R") args.push(...this.#terms(keys, fenced));
      if (code === "W") args.push(...this.#place(), ...(fenced ? [this.#block()] : []));
      return { code, keys, queueOf: code === "T" ? undefined : queueOf, args };
    });
    return this.#called(parts, fenced);
  }

  /** Returns the most common attempt of a waiter: alone, with its queue entry, for a held lock. */
  #asksAgain(fenced: boolean): BatchPart | undefined {
    const lock = this.#random.pick(locks);
    const members = this.#server.data.sortedSet(queueOf(lock))?.pairs() ?? [];
    const waiters = members.flatMap((id, at) => {
      return at % 2 === 0 && !id.startsWith("~") ? [[members[at + 1] ?? "", id]] : [];
    });
    if (waiters.length === 0 || this.#server.data.get(lock) === undefined) return undefined;
    const place = this.#random.pick(waiters);
    const args = ["o5", ...this.#terms([lock], fenced), ...place];
    if (fenced) args.push(this.#block());
    return { code: "W", keys: [lock], queueOf, args };
  }

  #called(parts: readonly BatchPart[], fenced: boolean): string[] {
    const [, ...head] = deployment;
    const script = { name: "", sha: "", source: "" };
    const batching = fenced
      ? { script, recordKey: "holdfast:node", head, strict: false }
      : { script, recordKey: undefined, head: [], strict: false };
    return batchCall(batching, parts).first(false).slice(2);
  }

  #terms(keys: readonly string[], fenced: boolean): string[] {
    return fenced ? [ttl, this.#number(), ...keys.map((_, index) => String(index))] : [ttl];
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

  #number(): string {
    this.#proposal += this.#random.integer(0, 3);
    return String(this.#proposal);
  }

  #id(): string {
    if (this.#random.chance(0.02)) return "nobody-can-be-told";
    return `${this.#random.pick(bases)}-w${this.#random.integer(1, 3)}`;
  }

  #block(): string {
    return this.#random.pick(["1", "2", "32"]);
  }

  /**
   * A waiter has one ticket for its whole wait. Some share a ticket, and some have a very great
   * one.
   */
  #place(): string[] {
    const id = this.#id();
    if (this.#random.chance(0.1)) this.#tickets.delete(id);
    const great = this.#random.chance(0.1) ? 9_007_199_254_740_000 : 1_000;
    const ticket = this.#tickets.get(id) ?? String(great + this.#random.integer(0, 6));
    this.#tickets.set(id, ticket);
    return [ticket, id];
  }

  #placeLeft(): string {
    return `${this.#random.pick(["", "-", "-", "="])}${this.#id()}`.replace(/^[^-=].*/, "");
  }
}
