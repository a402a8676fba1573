import { Cancellation } from "./cancellation.ts";
import type { ResolvedOptions } from "./options.ts";

/** One call that acquires, from its first attempt to its end, and what may end it before. */
export class AcquireCall extends Cancellation {
  readonly resources: readonly string[];
  readonly options: ResolvedOptions;
  #onAbort: (() => void) | undefined;

  constructor(resources: readonly string[], options: ResolvedOptions) {
    super();
    this.resources = resources;
    this.options = options;
  }

  /** From here until `unbind` the caller's signal, if there is one, cancels it. */
  bind(): void {
    const { signal } = this.options;
    if (signal === undefined) return;
    this.#onAbort = (): void => this.cancel(signal.reason);
    signal.addEventListener("abort", this.#onAbort);
  }

  unbind(): void {
    if (this.#onAbort === undefined) return;
    this.options.signal?.removeEventListener("abort", this.#onAbort);
    this.#onAbort = undefined;
  }
}
