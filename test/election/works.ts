import type { Clock } from "../../src/core/ports.ts";
import type { Term } from "../../src/election/index.ts";

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Work of several leaders, which records how many of them run at the same time. */
export class Works {
  readonly fences: bigint[] = [];
  /** Reason of the signal of each term that has ended. */
  readonly reasons: unknown[] = [];
  running = 0;
  atOnceMax = 0;
  readonly #linger: { readonly lingerMs: number; readonly clock: Clock } | undefined;

  /** The work goes on for `lingerMs` after its signal has aborted. */
  constructor(linger?: { readonly lingerMs: number; readonly clock: Clock }) {
    this.#linger = linger;
  }

  readonly work = async (term: Term): Promise<void> => {
    this.fences.push(term.fence);
    this.running += 1;
    this.atOnceMax = Math.max(this.atOnceMax, this.running);
    await untilAborted(term.signal);
    this.reasons.push(term.signal.reason);
    const linger = this.#linger;
    if (linger !== undefined) {
      await new Promise<void>((done) => linger.clock.setTimer(linger.lingerMs, true, done));
    }
    this.running -= 1;
  };
}
