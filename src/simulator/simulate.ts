/**
 * Runs the real lock library in a simulated world and checks the library's promises.
 *
 * Problem: errors in a distributed lock need rare schedules, such as a late message, a clock step
 * and a crash within one TTL. Real servers almost never produce them, and a failure cannot be
 * replayed.
 *
 * Idea: the core uses no clock, timer or random source of its own. The simulator provides them. It
 * has processes with drifting clocks, links that delay, lose and repeat messages, and models of
 * Redis nodes. One event queue runs all events in virtual time. All random choices come from the
 * seed, so the same scenario gives the same trace hash. `Witness`, `Votes`, `Orphans` and the
 * checkers compare the history with the promises, except for time spans in which a fault broke an
 * assumption (`assumptions.ts`).
 *
 * Limits: nodes and scripts are models, compared with real servers by differential tests. A run
 * without violations shows that this schedule is safe, not that every schedule is.
 */
import type { Break } from "./assumptions.ts";
import { judge } from "./checkers/judge.ts";
import type { History, Violation } from "./history.ts";
import type { Sabotage } from "./sabotage.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { TraceEvent } from "./trace.ts";
import { World } from "./world.ts";
import type { Register } from "./workload/register.ts";

/** Services that the simulator needs from its host. */
export interface SimulatorHost {
  /**
   * Runs all pending microtasks and the microtasks that they add. Returns undefined if all have
   * run, or a promise if they need a turn of the event loop.
   */
  drain(): Promise<void> | undefined;
  /** Returns the unhandled rejections since the last call. */
  takeUnhandledRejections?(): readonly unknown[];
}

export interface SimulationOptions {
  /** Keeps all events for a timeline. @default false */
  readonly keepTrace?: boolean;
  /** With `off`, events are neither kept nor hashed, which takes less time. @default "hashed" */
  readonly trace?: "hashed" | "off";
}

export interface SimulationReport {
  readonly scenario: Scenario;
  readonly violations: readonly Violation[];
  /** Hash of the trace. Two runs with the same events have the same hash. Constant if `off`. */
  readonly hash: string;
  readonly eventCount: number;
  readonly virtualMs: number;
  readonly trace: readonly TraceEvent[];
  readonly history: History;
  readonly breaks: readonly Break[];
  readonly faults: ReadonlyMap<FaultKind, number>;
  readonly unfenced: Register["tally"];
  readonly fenced: Register["tally"];
}

/** Limit for the events of a run. A run that reaches the limit is reported as a violation. */
const stepsMax = 5_000_000;

/** Runs a scenario to its end. The same scenario gives the same report, bit for bit. */
export async function simulate(
  scenario: Scenario,
  host: SimulatorHost,
  options: SimulationOptions = {},
): Promise<SimulationReport> {
  const run = new Run(scenario, options);
  while (run.goesOn()) if (run.step()) await host.drain();
  return run.report(host);
}

/**
 * Runs a scenario synchronously, for a host whose `drain` is synchronous. Call it outside
 * microtasks (from a timer callback, not after an `await`). Throws TypeError if `drain` returns a
 * promise.
 */
export function simulateNow(
  scenario: Scenario,
  host: SimulatorHost,
  options: SimulationOptions = {},
): SimulationReport {
  const run = new Run(scenario, options);
  while (run.goesOn()) {
    if (run.step() && host.drain() !== undefined) {
      throw new TypeError("this host cannot drain at once: use simulate()");
    }
  }
  return run.report(host);
}

export interface RunOptions extends SimulationOptions {
  /** Breaks rules on purpose, to test the checkers. @default none */
  readonly sabotage?: Sabotage;
  /** Limit for the events of the run. */
  readonly stepsMax?: number;
}

/** One run of a scenario, event by event. */
export class Run {
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #stepsMax: number;
  #steps = 0;

  constructor(scenario: Scenario, options: RunOptions) {
    this.#scenario = scenario;
    const { keepTrace = false, trace = "hashed", sabotage } = options;
    this.#world = new World(scenario, keepTrace ? "kept" : trace, sabotage);
    this.#stepsMax = options.stepsMax ?? stepsMax;
  }

  goesOn(): boolean {
    return !this.#world.isOver && this.#steps < this.#stepsMax;
  }

  step(): boolean {
    this.#steps += 1;
    return this.#world.step();
  }

  report(host: SimulatorHost): SimulationReport {
    const { scene, witness, assumptions, storage, struck, inhabitants } = this.#world;
    if (!this.#world.isOver) witness.report("no-progress", `no end after ${this.#steps} events`);
    for (const error of host.takeUnhandledRejections?.() ?? []) {
      witness.report("unhandled-rejection", String(error));
    }
    for (const { machine } of inhabitants) {
      for (const error of machine.failures) witness.report("unexpected-error", String(error));
    }
    if (storage.fencedTotals.lost > 0 && assumptions.fencesHeld) {
      witness.report("stale-write", `${storage.fencedTotals.lost} updates lost behind a fence`);
    }
    const { grants, tenures, confirmations } = witness;
    const history: History = { grants, tenures, confirmations };
    return {
      scenario: this.#scenario,
      violations: [...witness.violations, ...judge(history, assumptions)],
      hash: scene.trace.hash,
      eventCount: this.#steps,
      virtualMs: scene.nowMs,
      trace: scene.trace.events,
      history,
      breaks: assumptions.breaks,
      faults: struck,
      unfenced: storage.plainTotals,
      fenced: storage.fencedTotals,
    };
  }
}
