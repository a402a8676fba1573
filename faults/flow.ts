import type { Socket } from "node:net";
import { nowMs } from "./monotonic.ts";

/** Limit for bytes held back: a real network would not hold back more. */
const bytesMax = 16 * 1_024 * 1_024;

/** Passes bytes from one socket to another, in order, and can hold back or delay them. */
export class Flow {
  delayMs = 0;
  /** True if the next bytes shall be lost, and the connection with them. */
  breaksAtNext = false;
  readonly #to: Socket;
  readonly #onBroken: () => void;
  /** `undefined` stands for the end of the stream. */
  readonly #waiting: { readonly chunk: Buffer | undefined; readonly dueMs: number }[] = [];
  #bytes = 0;
  #held = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, onBroken: () => void) {
    this.#to = to;
    this.#onBroken = onBroken;
    from.on("data", (chunk: Buffer) => this.#push(chunk));
    from.on("end", () => this.#push(undefined));
    from.on("error", onBroken);
    // While the flow is held, the receiver does not learn that the sender is gone.
    from.on("close", () => this.#push(undefined));
  }

  get isHolding(): boolean {
    return this.#held && this.#waiting.length > 0;
  }

  hold(): void {
    this.#held = true;
  }

  open(): void {
    this.#held = false;
    this.#pump();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }

  #push(chunk: Buffer | undefined): void {
    if (this.#stopped) return;
    if (this.breaksAtNext && chunk !== undefined) return this.#onBroken();
    this.#bytes += chunk?.length ?? 0;
    this.#waiting.push({ chunk, dueMs: nowMs() + this.delayMs });
    if (this.#bytes > bytesMax) this.#onBroken();
    else this.#pump();
  }

  #pump(): void {
    for (;;) {
      const [first] = this.#waiting;
      if (this.#stopped || this.#held || first === undefined) return;
      const leftMs = first.dueMs - nowMs();
      if (leftMs > 0) {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#pump(), Math.ceil(leftMs));
        return;
      }
      this.#waiting.shift();
      if (first.chunk === undefined) return this.#onBroken();
      this.#bytes -= first.chunk.length;
      if (this.#to.writable) this.#to.write(first.chunk);
    }
  }
}
