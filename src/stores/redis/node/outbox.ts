import type { Operation } from "../commands/operation.ts";

const turn = Promise.resolve();

/** Limit: a longer list delays the commands of every other client of the server. */
export const listWeightMax = 128;
/** As many acquires or releases as fit in a list take up to four keys each. */
const usualWeight = 4;
const touchWeight = 2;

/** Returns what an operation takes of a list. Renewals, of which there are many, cost least. */
export function weightOf(operation: Operation | undefined): number {
  if (operation === undefined) return Infinity;
  const { kind, keys } = operation;
  return kind === "touch" ? touchWeight * keys.length : Math.max(usualWeight, keys.length);
}

/**
 * perf (inflight): collects what is sent to one node in one turn of the event loop, and sends it in
 * lists. A full list leaves at once, so that the server works while we encode the next. The rest
 * leaves after the continuations of the turn.
 */
export class Outbox<Item> {
  readonly #flush: (items: Item[]) => void;
  readonly #weightOf: (item: Item) => number;
  readonly #weightMax: number;
  #items: Item[] = [];
  #weight = 0;
  #scheduled = false;
  readonly #onTurn = (): void => {
    this.#scheduled = false;
    this.#flushNow();
  };

  constructor(weightMax: number, weightOf: (item: Item) => number, flush: (items: Item[]) => void) {
    this.#weightMax = weightMax;
    this.#weightOf = weightOf;
    this.#flush = flush;
  }

  add(item: Item): void {
    const weight = this.#weightOf(item);
    if (this.#weight + weight > this.#weightMax) this.#flushNow();
    this.#items.push(item);
    this.#weight += weight;
    if (this.#weight >= this.#weightMax) {
      this.#flushNow();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // A microtask runs after all continuations that one reply woke. perf (inflight): not by
      // queueMicrotask, which in Node.js makes a resource for each call and costs three times as
      // much.
      void turn.then(this.#onTurn);
    }
  }

  #flushNow(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.#weight = 0;
    this.#flush(items);
  }
}
