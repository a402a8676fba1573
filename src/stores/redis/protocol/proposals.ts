import type { Clock } from "../../../core/ports.ts";
import type { AcquireReply } from "../commands/operation.ts";

/**
 * Limit for how far in the future a fence, as a time in µs, may be by a server's clock. The scripts
 * have the same limit.
 */
const aheadUsMax = 60_000_000;
/**
 * Limit for the time by which our own clock may be ahead of the servers' time. It is below the
 * limit of the scripts, so that no node reduces a proposal and all nodes grant one fence.
 */
const ownAheadUsMax = 30_000_000;
/**
 * Limit while no server's time is known: a fence that is more than a day in the future by our own
 * clock is ignored.
 */
const unknownAheadUsMax = 86_400_000_000;

export interface ServerTime {
  /** Servers' time minus our monotonic time; undefined before the first reply that has a time. */
  readonly offsetMs: number | undefined;
}

/**
 * Makes proposals: fences that the client suggests in its acquires. A proposal is the wall clock in
 * µs, or one more than the greatest fence seen or proposed, whichever is greater. So a client whose
 * clock is behind proposes as high as the others, and the nodes grant one fence in one round. While
 * the nodes keep their counters, safety does not depend on proposals.
 *
 * The servers' time limits each proposal: after a clock that was ahead is corrected, its numbers
 * must not stay in the proposals.
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

  /** Records the fence in a reply: the fence of a grant, even a late one, or that of the holder. */
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
