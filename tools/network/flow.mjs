// @ts-check
/** Passes bytes from one socket to another, in order, and can hold back, delay or lose them. */

/** @typedef {import("node:net").Socket} Socket */
/**
 * @typedef {object} FlowEvents
 * @property {() => void} onBroken the connection has to end
 * @property {(chunk: Buffer) => boolean} [onChunk] called when bytes arrive; false loses them
 * @property {(chunk: Buffer) => void} [onPassed] called when bytes are passed on
 */

/** Limit for bytes held back: a real network would not hold back more. */
const bytesMax = 16 * 1_024 * 1_024;

export class Flow {
  delayMs = 0;
  /** True if the next bytes shall be lost, and the connection with them. */
  breaksAtNext = false;
  #to;
  #events;
  /** @type {{ readonly chunk: Buffer | undefined, readonly dueMs: number }[]} no chunk: the end */
  #waiting = [];
  #bytes = 0;
  #isHeld = false;
  #isStopped = false;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /**
   * @param {Socket} from
   * @param {Socket} to
   * @param {FlowEvents} events
   * @param {boolean} losesAtEnd true if bytes under way are lost when the sender ends
   */
  constructor(from, to, events, losesAtEnd = false) {
    this.#to = to;
    this.#events = events;
    // While the flow is held, the receiver does not learn that the sender is gone.
    const onEnd = losesAtEnd ? events.onBroken : () => this.#push(undefined);
    from.on("data", (chunk) => {
      if (events.onChunk?.(chunk) !== false) this.#push(chunk);
    });
    from.on("end", onEnd);
    from.on("error", events.onBroken);
    from.on("close", onEnd);
  }

  /** True if bytes arrived and are held back. */
  get isHolding() {
    return this.#isHeld && this.#waiting.length > 0;
  }

  hold() {
    this.#isHeld = true;
  }

  open() {
    this.#isHeld = false;
    this.#pump();
  }

  /** Loses the bytes that have not been passed on. */
  discard() {
    this.#waiting.length = 0;
    this.#bytes = 0;
  }

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.discard();
  }

  /** @param {Buffer | undefined} chunk */
  #push(chunk) {
    if (this.#isStopped) return;
    if (this.breaksAtNext && chunk !== undefined) {
      this.#events.onBroken();
      return;
    }
    this.#bytes += chunk?.length ?? 0;
    this.#waiting.push({ chunk, dueMs: performance.now() + this.delayMs });
    if (this.#bytes > bytesMax) this.#events.onBroken();
    else this.#pump();
  }

  #pump() {
    for (;;) {
      const [first] = this.#waiting;
      if (this.#isStopped || this.#isHeld || first === undefined) return;
      const leftMs = first.dueMs - performance.now();
      if (leftMs > 0) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(leftMs));
        return;
      }
      this.#waiting.shift();
      const { chunk } = first;
      if (chunk === undefined) {
        this.#events.onBroken();
        return;
      }
      this.#bytes -= chunk.length;
      this.#events.onPassed?.(chunk);
      if (this.#to.writable) this.#to.write(chunk);
    }
  }
}
