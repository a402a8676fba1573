import type { Clock } from "../../../core/ports.ts";
import type { AcquireReply } from "../replies.ts";

/** As in the scripts: no proposal lifts a counter further ahead of a server's time. */
const aheadUsMax = 60_000_000;
/** Our own clock may be so far ahead of theirs. The scripts cut nothing then, and nodes agree. */
const ownAheadUsMax = 30_000_000;
/** Limit until a server's time is known. A day: no clock in use is further ahead. */
const unknownAheadUsMax = 86_400_000_000;

/** The servers' time at a moment of our monotonic clock; undefined before a reply carried it. */
export interface ServerTime {
  serverMsAt(monotonicMs: number): number | undefined;
}

/**
 * A hybrid clock: the wall clock in microseconds, or one more than the greatest number seen or
 * proposed, whichever is greater. A client whose clock is behind catches up with what it sees, so
 * that nodes agree in one round trip; no safety rests on it while the nodes keep their counters.
 * Limited by the servers' time: a wall clock that is ahead, and numbers seen of another's, must
 * not stay in the proposals when that clock has been set right.
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

  /** Takes in the fence that a reply carries: of a grant, also a late one, or of the holder. */
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
    const serverMs = this.#servers.serverMsAt(this.#clock.monotonicMs());
    return serverMs === undefined ? undefined : Math.floor(serverMs * 1_000);
  }
}
