const firstPauseMs = 50;
const pauseMsMax = 1_000;

/**
 * Decides when a node that does not reply, or is not connected, gets a request all the same: at
 * growing pauses, until it replies. The next request of any round serves as the probe.
 */
export class ProbeSchedule {
  #pauseMs = firstPauseMs;
  #nextMs = -Infinity;

  /** True if a round should skip the node now. If false, the request of the caller is the probe. */
  shouldSkip(nowMs: number): boolean {
    if (nowMs < this.#nextMs) return true;
    this.#nextMs = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(pauseMsMax, this.#pauseMs * 2);
    return false;
  }

  succeeded(): void {
    this.#pauseMs = firstPauseMs;
    this.#nextMs = -Infinity;
  }
}
