/** Stored number that clients read, increment and write back under the lock. */
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

  /** Numbers of writes accepted, writes refused as stale, and updates overwritten unseen. */
  get tally(): { readonly accepted: number; readonly rejected: number; readonly lost: number } {
    return { accepted: this.#accepted, rejected: this.#rejected, lost: this.#lost };
  }

  /** Checks the fence on reads too: otherwise an older holder could still write after the read. */
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
