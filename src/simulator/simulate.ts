import type { Break } from "./assumptions.ts";
import { judge } from "./checkers/judge.ts";
import type { History, Violation } from "./history.ts";
import type { FaultKind, Scenario } from "./scenario.ts";
import type { TraceEvent } from "./trace.ts";
import { World } from "./world.ts";
import type { Register } from "./workload/register.ts";

/** What the simulator needs from outside: to run what waits in the microtask queue. */
export interface SimulatorHost {
  /**
   * Runs every microtask that is pending, and those that they add. One that does it at once returns
   * undefined; one that needs a turn of the event loop returns a promise.
   */
  drain(): Promise<void> | undefined;
  /** Rejections that nobody handled since the last call. */
  takeUnhandledRejections?(): readonly unknown[];
}

export interface SimulationOptions {
  /** Keep every event for a timeline. @default false */
  readonly keepTrace?: boolean;
}

export interface SimulationReport {
  readonly scenario: Scenario;
  readonly violations: readonly Violation[];
  /** The same for two runs if and only if they were the same run. */
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

/** A world that goes on for ever is a bug of its own. */
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
 * The same for a host whose `drain` works at once. To be called outside of any microtask: not after
 * an `await`, but from a timer's callback or the like.
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

class Run {
  readonly #scenario: Scenario;
  readonly #world: World;
  #steps = 0;

  constructor(scenario: Scenario, options: SimulationOptions) {
    this.#scenario = scenario;
    this.#world = new World(scenario, options.keepTrace ?? false);
  }

  goesOn(): boolean {
    return !this.#world.isOver && this.#steps < stepsMax;
  }

  step(): boolean {
    this.#steps += 1;
    return this.#world.step();
  }

  report(host: SimulatorHost): SimulationReport {
    const { scene, witness, assumptions, storage, struck, inhabitants } = this.#world;
    if (!this.#world.isOver) witness.report("no-progress", `no end after ${stepsMax} events`);
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
