const turn = Promise.resolve();

/**
 * Collects what is sent to one node in one turn of the event loop, and hands it over in pieces. A
 * piece leaves as soon as it is full, so that the server already works while we still encode; what
 * is left over leaves when the turn's continuations have run.
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
      // A microtask: the continuations that one reply woke are queued before it, all of them. Not
      // by queueMicrotask, which in Node.js makes a resource for each, and costs three times that.
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
