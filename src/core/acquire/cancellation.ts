import type { Cancellation } from "../store.ts";

/**
 * Cancels one call, when the caller's signal aborts or the manager closes. perf: lighter than an
 * AbortSignal. Users cannot reach it, so that none of their listeners can slow or break it.
 */
export class CallCancellation implements Cancellation {
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

  listen(listener: (() => void) | undefined): void {
    this.#listener = listener;
  }

  async orUntil(work: Promise<void>): Promise<void> {
    if (this.cancelled) return;
    await new Promise<void>((resolve) => {
      this.listen(resolve);
      void work.then(resolve);
    });
    this.listen(undefined);
  }
}
