/** Stored number that clients read, increment and write back while they hold the lock. */
export class Register {
  readonly #fenced: boolean;
  #version = 0;
  #lastFence = -1n;
  #accepted = 0;
  #rejected = 0;
  #lost = 0;

  constructor(fenced: boolean) {
    this.#fenced = fenced;
  }

  /**
   * Number of accepted writes, of writes that were rejected for their old fence, and of updates
   * that were lost because a client overwrote them without a read.
   */
  get tally(): { readonly accepted: number; readonly rejected: number; readonly lost: number } {
    return { accepted: this.#accepted, rejected: this.#rejected, lost: this.#lost };
  }

  /**
   * Returns the number, or undefined if the fence is too old. A read stores its fence like a write,
   * so that no earlier holder can write between this read and its write.
   */
  read(fence: bigint): number | undefined {
    return this.#admits(fence) ? this.#version : undefined;
  }

  /** Returns true if the write was accepted. */
  write(fence: bigint, readVersion: number): boolean {
    if (!this.#admits(fence)) {
      this.#rejected += 1;
      return false;
    }
    if (readVersion !== this.#version) this.#lost += 1;
    this.#version += 1;
    this.#accepted += 1;
    return true;
  }

  #admits(fence: bigint): boolean {
    if (!this.#fenced) return true;
    if (fence < this.#lastFence) return false;
    this.#lastFence = fence;
    return true;
  }
}
