import type { CallerSignals, SignalBinding } from "./caller-signals.ts";
import { Cancellation } from "./cancellation.ts";
import type { ResolvedOptions } from "./options.ts";

/** One call that acquires, from its first attempt to its end, and what may end it before. */
export class AcquireCall extends Cancellation {
  readonly resources: readonly string[];
  readonly options: ResolvedOptions;
  #signals: CallerSignals | undefined;
  #binding: SignalBinding | undefined;
  #reject: ((error: unknown) => void) | undefined;

  constructor(resources: readonly string[], options: ResolvedOptions) {
    super();
    this.resources = resources;
    this.options = options;
  }

  /** From here until `unbind` the caller's signal, if there is one, cancels it. */
  bind(signals: CallerSignals): void {
    const { signal } = this.options;
    if (signal === undefined) return;
    this.#signals = signals;
    this.#binding = signals.bind(signal, this);
  }

  unbind(): void {
    if (this.#binding === undefined) return;
    this.#signals?.unbind(this.#binding, this);
    this.#binding = undefined;
  }

  override cancel(reason: unknown): void {
    super.cancel(reason);
    this.unbind();
    this.#reject?.(this.reason);
  }

  /**
   * Returns what the caller gets: it settles as `work` does, or rejects as soon as the call is
   * cancelled or `fail` is called. `work` then goes on behind it, to clean up.
   */
  settling<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.cancelled) reject(this.reason);
      this.#reject = reject;
      work.then(resolve, reject);
    });
  }

  /** Rejects what the caller has. The work of the call may still have to clean up. */
  fail(error: unknown): void {
    this.#reject?.(error);
  }
}
