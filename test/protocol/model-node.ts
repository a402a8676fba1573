import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import type { Backend } from "./held-line.ts";

/** An action of a node for an owner that can count towards the owner's quorum. */
export interface NodeEvent {
  readonly at: number;
  readonly node: number;
  readonly owner: string;
  readonly kind: "grant" | "raise";
  readonly fence: number;
}

interface Held {
  readonly owner: string;
  readonly fence: number;
}

/** Counts the steps of all nodes together, so that events of different nodes have an order. */
export class StepCounter {
  now = 0;
  next(): number {
    this.now += 1;
    return this.now;
  }
}

/**
 * A small model of acquire, touch and release on a node that never loses its counters.
 * It has no time: keys expire when the test says so. model.test.ts compares it with a real server.
 */
export class ModelNode {
  readonly events: NodeEvent[] = [];
  /** Step at which an acquire of each owner was first executed here. */
  readonly firstAsked = new Map<string, number>();
  readonly #index: number;
  readonly #steps: StepCounter;
  /** True if a raise checks `c <= t`. False takes that rule out. */
  readonly #comparesFence: boolean;
  readonly #keys = new Map<string, Held>();
  readonly #counters = new Map<string, number>();

  constructor(index: number, steps: StepCounter, comparesFence = true) {
    this.#index = index;
    this.#steps = steps;
    this.#comparesFence = comparesFence;
  }

  readonly backend: Backend = async (command) => {
    if (command[0] === "INFO") return `redis_version:7.0.0\r\nrun_id:${this.#index}f\r\n`;
    const [, source, count, ...rest] = command;
    const keys = rest.slice(0, Number(count));
    const args = rest.slice(Number(count));
    const step = this.#steps.next();
    if (source === scripts.plain.source) return this.#release(locksOf(keys), args[4] ?? "");
    if (source === scripts.fenced.source) {
      const [, , , , , heading = "", , ...own] = args;
      const isTouch = heading.startsWith("T 1 ");
      const verdict = isTouch
        ? this.#touch(step, keys.slice(1), own)
        : this.#acquire(step, locksOf(keys.slice(1)), own);
      return `S 0 0 -\n${verdict}`;
    }
    throw new Error(`not modelled: ${command.join(" ").slice(0, 100)}`);
  };

  expire(key: string): void {
    this.#keys.delete(key);
  }

  /** Simulates a grant of another resource in the same shard. */
  bump(shard: string): void {
    this.#counters.set(shard, (this.#counters.get(shard) ?? 0) + 1);
  }

  #acquire(step: number, keys: readonly string[], args: readonly string[]): string {
    const [owner = "", proposal, ...shards] = args;
    if (!this.firstAsked.has(owner)) this.firstAsked.set(owner, step);
    const held = keys.flatMap((key) => this.#keys.get(key) ?? []);
    const other = held.find((lock) => lock.owner !== owner);
    if (other !== undefined) return `H 1 - ${other.owner}|${other.fence}`;
    if (held.length === keys.length) return grantedWith(held.at(-1)?.fence, proposal);
    if (held.length > 0) return `X PARTIAL ${held.length}`;
    const counters = shards.map((shard) => (this.#counters.get(shard) ?? 0) + 1);
    const fence = Math.max(Number(proposal), ...counters);
    for (const shard of shards) this.#counters.set(shard, fence);
    for (const key of keys) this.#keys.set(key, { owner, fence });
    this.events.push({ at: step, node: this.#index, owner, kind: "grant", fence });
    return grantedWith(fence, proposal);
  }

  #touch(step: number, keys: readonly string[], args: readonly string[]): string {
    const [whole = "", ...shards] = args;
    const [owner = "", text] = whole.split("|");
    const fence = Number(text);
    for (const key of keys) {
      const lock = this.#keys.get(key);
      if (lock === undefined) return "N ABSENT";
      if (lock.owner !== owner) return "N OTHER";
      if (this.#comparesFence && lock.fence > fence) return "N NEWER";
    }
    for (const shard of shards) {
      this.#counters.set(shard, Math.max(fence, this.#counters.get(shard) ?? 0));
    }
    for (const key of keys) {
      const before = this.#keys.get(key)?.fence ?? 0;
      this.#keys.set(key, { owner, fence: Math.max(before, fence) });
    }
    this.events.push({ at: step, node: this.#index, owner, kind: "raise", fence });
    return "K";
  }

  #release(keys: readonly string[], whole: string): string {
    const [owner] = whole.split("|");
    const own = keys.filter((key) => this.#keys.get(key)?.owner === owner);
    for (const key of own) this.#keys.delete(key);
    return `-\nR ${own.length} ${keys.length}`;
  }
}

function grantedWith(fence: number | undefined, proposal: string | undefined): string {
  return String(fence) === proposal ? "G" : `G ${fence}`;
}

/** Lock keys come first, then the same number of queue keys, which are always empty here. */
function locksOf(keys: readonly string[]): readonly string[] {
  return keys.slice(0, keys.length / 2);
}
