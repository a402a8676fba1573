import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scenario } from "./scenario.ts";
import type { Scene } from "./scene.ts";

/** Step of a node's clock. */
interface Step {
  readonly atMs: number;
  readonly byMs: number;
}

/** Last reply with the server's time that a process received from a node. */
interface Received {
  readonly incarnation: number;
  readonly executedMs: number;
  /** Time of the last forward clock step that the process can detect from its replies. */
  readonly stepMs: number;
}

/** Reply of a node to a command, when it arrives at the client. */
export interface ReceivedReply {
  readonly command: readonly string[];
  readonly incarnation: number;
  readonly sentMs: number;
  readonly executedMs: number;
  readonly reply: unknown;
}

/**
 * Counts the nodes that support a lease.
 *
 * A node's vote dates from the last command with which the node wrote or confirmed the key. The
 * vote becomes void when a reply proves to the process that the node's clock was set forward later.
 * No client can count more votes than `count` returns. So a client that trusts a lease for which
 * `count` is less than a quorum is wrong.
 */
export class Votes {
  readonly #scene: Scene;
  readonly #scenario: Scenario;
  readonly #steps = new Map<SimulatedNode, Step[]>();
  readonly #confirmed = new Map<SimulatedNode, Map<string, number>>();
  readonly #received = new Map<SimulatedProcess, Map<SimulatedNode, Received>>();
  /**
   * Processes whose own clocks were stepped or held. They cannot detect a step of a node's clock.
   */
  readonly #unsure = new Set<SimulatedProcess>();
  #greatestTripMs = 0;

  constructor(scene: Scene, scenario: Scenario) {
    this.#scene = scene;
    this.#scenario = scenario;
  }

  onNodeStep(node: SimulatedNode, byMs: number): void {
    const steps = this.#steps.get(node) ?? [];
    steps.push({ atMs: this.#scene.nowMs, byMs });
    this.#steps.set(node, steps);
  }

  onOwnClock(machine: SimulatedProcess): void {
    this.#unsure.add(machine);
  }

  /** Records a vote for each owner that the command contains and that holds a key afterwards. */
  onExecuted(node: SimulatedNode, command: readonly string[]): void {
    for (const key of this.#scenario.work.resources) {
      const value = node.server.data.get(key);
      if (value === undefined) continue;
      const { owner } = ownerAndFence(value);
      // The command contains the owner alone, or the whole stored value.
      if (!command.includes(owner) && !command.includes(value)) continue;
      const confirmed = this.#confirmed.get(node) ?? new Map<string, number>();
      confirmed.set(owner, this.#scene.nowMs);
      this.#confirmed.set(node, confirmed);
    }
  }

  /**
   * Records the server's time in a reply. Returns true if the reply proves to the process that the
   * node's clock was set forward.
   */
  onReceived(machine: SimulatedProcess, node: SimulatedNode, received: ReceivedReply): boolean {
    const { incarnation, sentMs, executedMs, reply } = received;
    if (!hasTime(reply)) return false;
    this.#greatestTripMs = Math.max(this.#greatestTripMs, this.#scene.nowMs - sentMs);
    const nodes = this.#received.get(machine) ?? new Map<SimulatedNode, Received>();
    this.#received.set(machine, nodes);
    const before = nodes.get(node);
    // Times before and after a restart of the node are not compared: its clock may have changed.
    const isSame = before?.incarnation === incarnation;
    const stepMs = isSame ? this.#stepBetween(node, before.executedMs, executedMs) : undefined;
    const last = isSame ? before.stepMs : -Infinity;
    nodes.set(node, { incarnation, executedMs, stepMs: stepMs ?? last });
    return stepMs !== undefined && !this.#unsure.has(machine);
  }

  /** Returns the number of nodes whose vote for the attempt is still valid for its process. */
  count({ machine, owner, heldSinceMs }: AttemptRecord): number {
    let count = 0;
    const received = this.#unsure.has(machine) ? undefined : this.#received.get(machine);
    for (const [node, confirmed] of this.#confirmed) {
      const stepMs = received?.get(node)?.stepMs ?? -Infinity;
      const confirmedMs = confirmed.get(owner) ?? -Infinity;
      if (confirmedMs >= heldSinceMs && confirmedMs >= stepMs) count += 1;
    }
    return count;
  }

  /**
   * Returns the time of the last clock step between two replies. Returns undefined if there is no
   * step, or if a network delay could explain the sum of the steps.
   */
  #stepBetween(node: SimulatedNode, fromMs: number, untilMs: number): number | undefined {
    const steps = this.#steps.get(node)?.filter(({ atMs }) => atMs > fromMs && atMs <= untilMs);
    const last = steps?.at(-1);
    if (steps === undefined || last === undefined) return undefined;
    const { driftFactor, driftFixedMs } = this.#scenario.store;
    const trustedMs = 3 * (this.#greatestTripMs / 2 + 1) + driftFixedMs;
    const allowedMs = trustedMs + driftFactor * (this.#scene.nowMs - fromMs);
    const sumMs = steps.reduce((sum, { byMs }) => sum + byMs, 0);
    // The limit is twice the allowance: an earlier step back may have been too small to detect.
    return sumMs > 2 * allowedMs ? last.atMs : undefined;
  }
}

/** True if the reply begins with the server's time: "S seconds microseconds". */
function hasTime(reply: unknown): boolean {
  return typeof reply === "string" && /^S \d+ \d+ /.test(reply);
}
