import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { StorePlan } from "../scenario.ts";
import type { Witness } from "../witness.ts";

/** Tolerance: each timer fires up to 2 ms late, and some calls need several timers in a row. */
const slackMs = 40;

interface Pending {
  readonly machine: SimulatedProcess;
  readonly what: string;
}

/** Computes from the options how long each call may take, and reports calls that take longer. */
export class Promises {
  readonly #witness: Witness;
  readonly #plan: StorePlan;
  readonly #nodeCount: number;
  readonly #pending = new Set<Pending>();

  constructor(witness: Witness, plan: StorePlan, nodeCount: number) {
    this.#witness = witness;
    this.#plan = plan;
    this.#nodeCount = nodeCount;
  }

  /** Limit for the time until a client has the replies of all nodes to one request (a round). */
  roundMs(ttlMs: number): number {
    const share = this.#nodeCount === 1 ? 0.2 : 0.05;
    return this.#plan.nodeTimeoutMs ?? Math.min(1_000, Math.max(50, ttlMs * share));
  }

  /**
   * Limit for the time in which a client finds out which nodes may vote, and admits those that may:
   * two reads of all node records (the hashes that Holdfast keeps on the servers) and one admission
   * per node.
   */
  get sweepMs(): number {
    if (this.#plan.admission === "off") return 0;
    return (2 + this.#nodeCount) * this.roundMs(this.#plan.maxTtlMs);
  }

  /**
   * Limit for an acquire: its wait option, the check of which nodes may vote, one round for the
   * last attempt and one for its clean-up. If the acquire may wait, one more round to subscribe.
   */
  acquireMs(ttlMs: number, waitMs: number): number {
    const rounds = waitMs > 0 ? 3 : 2;
    return waitMs + this.sweepMs + rounds * this.roundMs(ttlMs);
  }

  /** Limit for a call after its abort: the call does not wait for its clean-up. */
  readonly cancelMs = 0;

  /**
   * Limit for an extend. It may wait for a renewal in flight (two rounds) and an earlier extend.
   */
  extendMs(ttlMs: number): number {
    return 4 * this.roundMs(ttlMs);
  }

  /** Limit for closing the manager: it waits for calls in flight and releases leases. */
  closeMs(ttlMs: number): number {
    return (
      this.acquireMs(ttlMs, 0) +
      this.roundMs(ttlMs) +
      this.extendMs(ttlMs) +
      this.roundMs(this.#plan.maxTtlMs)
    );
  }

  /** Limit for `using`, without the time of the user's work: an acquire and a release. */
  usingMs(ttlMs: number, waitMs: number, longestTtlMs: number): number {
    return this.acquireMs(ttlMs, waitMs) + this.roundMs(longestTtlMs);
  }

  /**
   * Awaits `call` and reports a violation if it takes longer than `boundMs`. With Infinity, the
   * call must only settle before the run ends. `asideMs` returns the time of the user's own work in
   * the call, which is not counted.
   */
  async watch<Result>(
    machine: SimulatedProcess,
    what: string,
    boundMs: number,
    call: Promise<Result>,
    asideMs: () => number = () => 0,
  ): Promise<Result> {
    const pending: Pending = { machine, what };
    const startedMs = awakeMs(machine);
    this.#pending.add(pending);
    try {
      return await call;
    } finally {
      this.#pending.delete(pending);
      const tookMs = awakeMs(machine) - startedMs - asideMs();
      if (tookMs > boundMs + slackMs) {
        const took = `${what} of ${machine.name} took ${tookMs.toFixed(1)} ms`;
        this.#witness.report("late-promise", `${took} of at most ${boundMs.toFixed(1)} ms`);
      }
    }
  }

  /**
   * Called at the end of the run. Reports calls that never settled, except in crashed processes.
   */
  reportUnsettled(): void {
    for (const { machine, what } of this.#pending) {
      if (machine.hasCrashed) continue;
      this.#witness.report("late-promise", `${what} of ${machine.name} never settled`);
    }
  }
}

/** Returns the process's monotonic time, without the time in which it was paused. */
export function awakeMs(machine: SimulatedProcess): number {
  return machine.monotonicMs() - machine.pausedMs() * machine.monotonic.rate;
}
