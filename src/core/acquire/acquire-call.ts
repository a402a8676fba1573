import type { CallerSignals, SignalBinding } from "./caller-signals.ts";
import { CallCancellation } from "./cancellation.ts";
import type { ResolvedOptions } from "../options.ts";

/** One call that acquires: its resources, its options, and what can cancel it. */
export class AcquireCall extends CallCancellation {
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

  /** Cancels the call when the caller's signal aborts, until `unbind`. */
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
   * Returns the promise that the caller gets. It settles as `work` does, or rejects as soon as the
   * call is cancelled or `fail` is called. `work` then continues in the background, to clean up.
   */
  settling<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.cancelled) reject(this.reason);
      this.#reject = reject;
      work.then(resolve, reject);
    });
  }

  /** Rejects the promise that the caller got. The work of the call may continue, to clean up. */
  fail(error: unknown): void {
    this.#reject?.(error);
  }
}
