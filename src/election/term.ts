import type { Lease } from "../core/lease/lease.ts";
import { TermEndedError } from "./term-ended-error.ts";

/** Time for which a candidate leads. The work of the leader receives it. */
export interface Term {
  /**
   * Fence of the lease, and number of the term: greater than that of every earlier term. Reading it
   * throws UnsupportedError if the store does not fence.
   */
  readonly fence: bigint;
  /**
   * Signal that aborts when the work has to end: with LeaseLostError if the lease is lost, with
   * TermEndedError after `resign()` or `stop()`, with ClosedError if the manager is closed.
   */
  readonly signal: AbortSignal;
  readonly lease: Lease;
}

/** How the work of a term ended. `error` is undefined if the work returned. */
export interface Settled {
  readonly error: { readonly thrown: unknown } | undefined;
}

/** A term whose work is running. */
export class CurrentTerm implements Term {
  readonly lease: Lease;
  readonly #controller = new AbortController();

  constructor(lease: Lease) {
    this.lease = lease;
  }

  get fence(): bigint {
    return this.lease.fence;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Reason of the candidate for the end of the term. Undefined if it did not end the term. */
  get ended(): "resigned" | "stopped" | undefined {
    const { reason } = this.#controller.signal;
    return reason instanceof TermEndedError ? reason.reason : undefined;
  }

  end(name: string, reason: "resigned" | "stopped"): void {
    this.#controller.abort(new TermEndedError(name, reason));
  }

  /** Runs the work until it settles. A loss of the lease aborts the signal of the term. */
  async run(work: (term: Term) => unknown): Promise<Settled> {
    const { signal } = this.lease;
    const onLoss = (): void => this.#controller.abort(signal.reason);
    signal.addEventListener("abort", onLoss);
    if (signal.aborted) onLoss();
    try {
      await work(this);
      return { error: undefined };
    } catch (thrown) {
      return { error: { thrown } };
    } finally {
      signal.removeEventListener("abort", onLoss);
    }
  }

  /**
   * True if the error only reports that the signal of the term aborted: it is the reason, or an
   * AbortError that has the reason as its cause.
   */
  isOwnEnd(thrown: unknown): boolean {
    const { aborted, reason } = this.#controller.signal;
    if (!aborted) return false;
    return thrown === reason || (thrown instanceof Error && thrown.cause === reason);
  }
}
