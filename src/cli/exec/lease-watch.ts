import type { Lease } from "../../core/lease/lease.ts";
import { stopLeftMs, type StopTerms } from "./stop-plan.ts";

/**
 * Limit for the time between two checks. A longer timer could fire too late, because the monotonic
 * clock stops while the machine sleeps.
 */
const lookMsMax = 500;

/**
 * Calls `onEnd` once: when the lease is lost, or when its remaining time is only enough to stop the
 * command.
 */
export class LeaseWatch {
  readonly #lease: Lease;
  readonly #terms: StopTerms;
  readonly #onEnd: (why: "lost" | "doubtful") => void;
  readonly #look = (): void => this.look();
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor(lease: Lease, terms: StopTerms, onEnd: (why: "lost" | "doubtful") => void) {
    this.#lease = lease;
    this.#terms = terms;
    this.#onEnd = onEnd;
    lease.signal.addEventListener("abort", this.#look);
    this.#timer = setTimeout(this.#look, 0);
  }

  look(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const spareMs = this.#lease.remainingMs() - stopLeftMs(this.#terms);
    // The reading may have ended the lease, and its signal has then called `onEnd`.
    if (this.#over) return;
    if (this.#lease.state === "lost") return this.#finish("lost");
    if (spareMs <= 0) return this.#finish("doubtful");
    this.#timer = setTimeout(this.#look, Math.min(lookMsMax, Math.ceil(spareMs)));
  }

  end(): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#lease.signal.removeEventListener("abort", this.#look);
  }

  #finish(why: "lost" | "doubtful"): void {
    this.end();
    this.#onEnd(why);
  }
}
