import type { CallCancellation } from "./cancellation.ts";

/**
 * Signals that callers passed to the calls of one manager. Many calls may share one signal, but
 * Node.js warns of a leak when a signal has more than ten listeners. So each signal gets one
 * listener, which is removed with the last of its calls.
 */
export class CallerSignals {
  readonly #bindings = new Map<AbortSignal, SignalBinding>();

  /** Cancels `call` when `signal` aborts, until `unbind`. */
  bind(signal: AbortSignal, call: CallCancellation): SignalBinding {
    const bound = this.#bindings.get(signal);
    if (bound === undefined) {
      const made = new SignalBinding(signal, call);
      this.#bindings.set(signal, made);
      return made;
    }
    bound.add(call);
    return bound;
  }

  unbind(binding: SignalBinding, call: CallCancellation): void {
    if (binding.remove(call)) this.#bindings.delete(binding.signal);
  }
}

/** Calls that one signal cancels, with the one listener on that signal. */
export class SignalBinding {
  readonly signal: AbortSignal;
  readonly #onAbort: () => void;
  /** perf: most signals have one call, which needs no set. */
  #first: CallCancellation | undefined;
  #others: Set<CallCancellation> | undefined;

  constructor(signal: AbortSignal, first: CallCancellation) {
    this.signal = signal;
    this.#first = first;
    this.#onAbort = () => this.#abort();
    signal.addEventListener("abort", this.#onAbort);
  }

  add(call: CallCancellation): void {
    this.#others ??= new Set();
    this.#others.add(call);
  }

  /** Removes `call`. Returns true if no call is left: then the listener is removed, too. */
  remove(call: CallCancellation): boolean {
    if (this.#first === call) this.#first = undefined;
    else this.#others?.delete(call);
    if (this.#first !== undefined || (this.#others?.size ?? 0) > 0) return false;
    this.signal.removeEventListener("abort", this.#onAbort);
    return true;
  }

  #abort(): void {
    const { reason } = this.signal;
    this.#first?.cancel(reason);
    for (const call of this.#others ?? []) call.cancel(reason);
  }
}
