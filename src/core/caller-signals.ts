import type { Cancellation } from "./cancellation.ts";

/**
 * The signals that callers gave to the calls of one manager. Many calls may share one signal: the
 * manager adds one listener to it, and removes that with the last of these calls. Node.js warns of
 * a leak when one signal has more than ten listeners.
 */
export class CallerSignals {
  readonly #bindings = new Map<AbortSignal, SignalBinding>();

  /** From here until `unbind`, `call` is cancelled when `signal` aborts. */
  bind(signal: AbortSignal, call: Cancellation): SignalBinding {
    const bound = this.#bindings.get(signal);
    if (bound === undefined) {
      const made = new SignalBinding(signal, call);
      this.#bindings.set(signal, made);
      return made;
    }
    bound.add(call);
    return bound;
  }

  unbind(binding: SignalBinding, call: Cancellation): void {
    if (binding.remove(call)) this.#bindings.delete(binding.signal);
  }
}

/** The calls that one signal cancels, and the one listener that does it. */
export class SignalBinding {
  readonly signal: AbortSignal;
  readonly #onAbort: () => void;
  /** perf: usually there is no other call with the signal, and no set is made. */
  #first: Cancellation | undefined;
  #others: Set<Cancellation> | undefined;

  constructor(signal: AbortSignal, first: Cancellation) {
    this.signal = signal;
    this.#first = first;
    this.#onAbort = () => this.#abort();
    signal.addEventListener("abort", this.#onAbort);
  }

  add(call: Cancellation): void {
    this.#others ??= new Set();
    this.#others.add(call);
  }

  /** True if no call is left, and the listener is removed. */
  remove(call: Cancellation): boolean {
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
