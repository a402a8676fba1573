import type { Cancellation } from "../store.ts";

/**
 * Cancellation of one call, by the caller's signal or by the close of the manager. perf: costs less
 * than an AbortSignal. Users have no access to it, so their listeners cannot slow or break it.
 */
export class CallCancellation implements Cancellation {
  #reason: { readonly value: unknown } | undefined;
  #listener: (() => void) | undefined;
  #binding: SignalBinding | undefined;

  get cancelled(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): unknown {
    return this.#reason?.value;
  }

  cancel(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = { value: reason };
    this.unbind();
    const listener = this.#listener;
    this.#listener = undefined;
    listener?.();
  }

  /** Cancels the call when `signal` aborts, until `unbind`. */
  bind(signals: CallerSignals, signal: AbortSignal): void {
    this.#binding = signals.bind(signal, this);
  }

  unbind(): void {
    if (this.#binding === undefined) return;
    this.#binding.remove(this);
    this.#binding = undefined;
  }

  // A call waits for one thing at a time, so there is one listener.
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

/**
 * Signals that callers passed to the calls of one manager. Many calls may share one signal, but
 * Node.js warns of a leak when a signal has more than ten listeners. So each signal gets one
 * listener, which is removed when the signal's last call ends.
 */
export class CallerSignals {
  readonly #bindings = new Map<AbortSignal, SignalBinding>();

  bind(signal: AbortSignal, call: CallCancellation): SignalBinding {
    const bound = this.#bindings.get(signal);
    if (bound === undefined) {
      const made = new SignalBinding(signal, call, this.#bindings);
      this.#bindings.set(signal, made);
      return made;
    }
    bound.add(call);
    return bound;
  }
}

/** Calls that one signal cancels, with the one listener on that signal. */
class SignalBinding {
  readonly #signal: AbortSignal;
  readonly #bindings: Map<AbortSignal, SignalBinding>;
  readonly #onAbort: () => void;
  /** Calls of this signal. perf: most signals have one call, which needs no set. */
  #first: CallCancellation | undefined;
  #others: Set<CallCancellation> | undefined;

  constructor(
    signal: AbortSignal,
    first: CallCancellation,
    bindings: Map<AbortSignal, SignalBinding>,
  ) {
    this.#signal = signal;
    this.#first = first;
    this.#bindings = bindings;
    this.#onAbort = () => this.#abort();
    signal.addEventListener("abort", this.#onAbort);
  }

  add(call: CallCancellation): void {
    this.#others ??= new Set();
    this.#others.add(call);
  }

  /** Removes `call`. Removes the listener if that was the last call. */
  remove(call: CallCancellation): void {
    if (this.#first === call) this.#first = undefined;
    else this.#others?.delete(call);
    if (this.#first !== undefined || (this.#others?.size ?? 0) > 0) return;
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#bindings.delete(this.#signal);
  }

  #abort(): void {
    const { reason } = this.#signal;
    this.#first?.cancel(reason);
    for (const call of this.#others ?? []) call.cancel(reason);
  }
}
