import type { SimulatedProcess } from "../process/simulated-process.ts";
import type { StorePlan } from "../scenario.ts";
import type { Witness } from "../witness.ts";

/** Timers fire up to two milliseconds late each, and some calls need several in turn. */
const slackMs = 40;

interface Pending {
  readonly machine: SimulatedProcess;
  readonly what: string;
}

/** How long each call may take, computed from the options alone, and whether it kept to that. */
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

  /** One fan-out. */
  roundMs(ttlMs: number): number {
    const share = this.#nodeCount === 1 ? 0.2 : 0.05;
    return this.#plan.nodeTimeoutMs ?? Math.min(1_000, Math.max(50, ttlMs * share));
  }

  /** Two looks at the records, and one admission for each node. */
  get sweepMs(): number {
    if (this.#plan.admission === "off") return 0;
    return (2 + this.#nodeCount) * this.roundMs(this.#plan.ttlMaxMs);
  }

  /**
   * Beginning to listen, where it waits; all rounds of the last attempt after the end of the wait;
   * and the clean-up.
   */
  acquireMs(ttlMs: number, waitMs: number): number {
    const rounds = waitMs > 0 ? 3 : 2;
    return waitMs + this.sweepMs + rounds * this.roundMs(ttlMs);
  }

  /** A call that is aborted or closed does not wait for its clean-up. */
  readonly cancelMs = 0;

  /** Waits for a renewal that is under way, of two rounds, and for another that came first. */
  extendMs(ttlMs: number): number {
    return 4 * this.roundMs(ttlMs);
  }

  closeMs(ttlMs: number): number {
    return (
      this.acquireMs(ttlMs, 0) +
      this.roundMs(ttlMs) +
      this.extendMs(ttlMs) +
      this.roundMs(this.#plan.ttlMaxMs)
    );
  }

  /** Passes `call` on, and reports it when it is late. Infinity: it must settle before the end. */
  async watch<Result>(
    machine: SimulatedProcess,
    what: string,
    boundMs: number,
    call: Promise<Result>,
  ): Promise<Result> {
    const pending: Pending = { machine, what };
    const startedMs = machine.monotonicMs();
    const pausedBeforeMs = machine.pausedMs();
    this.#pending.add(pending);
    try {
      return await call;
    } finally {
      this.#pending.delete(pending);
      const pausedMs = (machine.pausedMs() - pausedBeforeMs) * machine.monotonic.rate;
      const tookMs = machine.monotonicMs() - startedMs - pausedMs;
      if (tookMs > boundMs + slackMs) {
        const told = `${what} of ${machine.name} took ${tookMs.toFixed(1)} ms`;
        this.#witness.report("late-promise", `${told} of at most ${boundMs.toFixed(1)} ms`);
      }
    }
  }

  /** At the end of the world nothing may still be waited for, except by the dead. */
  reportUnsettled(): void {
    for (const { machine, what } of this.#pending) {
      if (machine.hasCrashed) continue;
      this.#witness.report("late-promise", `${what} of ${machine.name} never settled`);
    }
  }
}
