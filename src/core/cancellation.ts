/**
 * Ends one wait, whoever wants it ended: the caller's signal, or the manager's close. Lighter than
 * an AbortSignal, and private to us, so that no listener of a user can slow or break it.
 */
export class Cancellation {
  #reason: { readonly value: unknown } | undefined;
  #listener: (() => void) | undefined;

  get cancelled(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): unknown {
    return this.#reason?.value;
  }

  cancel(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = { value: reason };
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  /** One listener at a time: a wait is in one place at a time. `undefined` takes it away. */
  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
  }

  /** Resolves with `work`, or earlier when cancelled; `work` must not reject. */
  async orUntil(work: Promise<void>): Promise<void> {
    if (this.cancelled) return;
    await new Promise<void>((resolve) => {
      this.listen(resolve);
      void work.then(resolve);
    });
    this.listen(undefined);
  }
}
