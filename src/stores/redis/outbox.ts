/**
 * Collects what is sent to one node in one turn of the event loop, and hands it over in pieces. A
 * piece leaves as soon as it is full, so that the server already works while we still encode; what
 * is left over leaves when the turn's continuations have run.
 */
export class Outbox<Item> {
  readonly #flush: (items: Item[]) => void;
  readonly #sizeMax: number;
  #items: Item[] = [];
  #scheduled = false;

  constructor(sizeMax: number, flush: (items: Item[]) => void) {
    this.#sizeMax = sizeMax;
    this.#flush = flush;
  }

  add(item: Item): void {
    this.#items.push(item);
    if (this.#items.length >= this.#sizeMax) {
      this.#flushNow();
    } else if (!this.#scheduled) {
      this.#scheduled = true;
      // A microtask: the continuations that one reply woke are queued before it, all of them.
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#flushNow();
      });
    }
  }

  #flushNow(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.#flush(items);
  }
}
