import type { Clock } from "../../../core/ports.ts";
import type { AcquireReply } from "../commands/operation.ts";

/** Limit, the same as in the scripts: how far a fence may be ahead of a server's time. */
const aheadUsMax = 60_000_000;
/**
 * Limit for our own clock. Smaller, so that the scripts cap nothing and all nodes grant one fence.
 */
const ownAheadUsMax = 30_000_000;
/** Limit until a server's time is known. A day: no clock in use is further ahead. */
const unknownAheadUsMax = 86_400_000_000;

export interface ServerTime {
  /** Servers' time minus our monotonic time; undefined before the first reply that has one. */
  readonly offsetMs: number | undefined;
}

/**
 * Proposes fences from a hybrid clock: the wall clock in µs, or one more than the greatest fence
 * seen or proposed, whichever is greater. A client whose clock is behind catches up, so that nodes
 * agree in one round. Safety does not depend on it while the nodes keep their counters.
 *
 * Capped by the servers' time: after a clock that was ahead is corrected, its numbers must not stay
 * in the proposals.
 */
export class Proposals {
  readonly #clock: Clock;
  readonly #servers: ServerTime;
  #last = 0;

  constructor(clock: Clock, servers: ServerTime) {
    this.#clock = clock;
    this.#servers = servers;
  }

  next(): number {
    const wallUs = this.#clock.wallMs() * 1_000;
    const serverUs = this.#serverUs();
    const ownUs = serverUs === undefined ? wallUs : Math.min(wallUs, serverUs + ownAheadUsMax);
    this.#last = Math.max(ownUs, this.#last + 1);
    if (serverUs !== undefined) this.#last = Math.min(this.#last, serverUs + aheadUsMax);
    return this.#last;
  }

  /** Notes the fence in a reply: that of a grant, even a late one, or that of the holder. */
  learn(reply: AcquireReply): void {
    if (reply.kind === "granted") this.see(reply.fence);
    else if (reply.kind === "held") this.see(Number(reply.holder?.fence ?? 0));
  }

  see(fence: number): void {
    if (fence <= this.#last) return;
    const serverUs = this.#serverUs();
    const mostUs =
      serverUs === undefined
        ? this.#clock.wallMs() * 1_000 + unknownAheadUsMax
        : serverUs + aheadUsMax;
    if (fence <= mostUs) this.#last = fence;
  }

  #serverUs(): number | undefined {
    const { offsetMs } = this.#servers;
    if (offsetMs === undefined) return undefined;
    return Math.floor((this.#clock.monotonicMs() + offsetMs) * 1_000);
  }
}
