import type { Socket } from "node:net";
import { nowMs } from "./monotonic.ts";

/** More than this held back is no longer a network's doing. */
const bytesMax = 16 * 1_024 * 1_024;

/** Bytes from one socket to another, in order, held back or late if so told. */
export class Flow {
  delayMs = 0;
  /** What comes next is lost, and the connection with it. */
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
    // Behind a cut nobody learns that the other side is gone, until the cut heals.
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
