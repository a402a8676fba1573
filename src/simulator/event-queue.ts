export interface QueuedEvent {
  readonly atMs: number;
  /** Sequence number. Of two events at the same time, the one added first runs first. */
  readonly order: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Pending events of a world in the order of virtual time (a binary heap). */
export class EventQueue {
  readonly #heap: QueuedEvent[] = [];
  #count = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(atMs: number, run: () => void): QueuedEvent {
    this.#count += 1;
    const event = { atMs, order: this.#count, run, cancelled: false };
    let index = this.#heap.length;
    this.#heap.push(event);
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = this.#heap[parentIndex];
      if (parent === undefined || isBefore(parent, event)) break;
      this.#heap[index] = parent;
      index = parentIndex;
    }
    this.#heap[index] = event;
    return event;
  }

  /** Returns the next event that was not cancelled, or undefined if there is none. */
  pop(): QueuedEvent | undefined {
    for (;;) {
      const first = this.#heap[0];
      const last = this.#heap.pop();
      if (first === undefined || last === undefined) return undefined;
      if (first !== last) this.#sink(last);
      if (!first.cancelled) return first;
    }
  }

  #sink(event: QueuedEvent): void {
    let index = 0;
    for (;;) {
      let childIndex = index * 2 + 1;
      let child = this.#heap[childIndex];
      if (child === undefined) break;
      const right = this.#heap[childIndex + 1];
      if (right !== undefined && isBefore(right, child)) {
        child = right;
        childIndex += 1;
      }
      if (isBefore(event, child)) break;
      this.#heap[index] = child;
      index = childIndex;
    }
    this.#heap[index] = event;
  }
}

function isBefore(one: QueuedEvent, other: QueuedEvent): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}
