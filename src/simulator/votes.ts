import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { AttemptRecord } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scenario } from "./scenario.ts";
import type { Scene } from "./scene.ts";

interface Step {
  readonly atMs: number;
  readonly byMs: number;
}

/** What a process last heard of a node's clock. */
interface Heard {
  readonly incarnation: number;
  readonly executedMs: number;
  /** The last step forward that it could tell from this. */
  readonly stepMs: number;
}

/** A reply as it arrived. */
export interface HeardReply {
  readonly command: readonly string[];
  readonly incarnation: number;
  readonly sentMs: number;
  readonly executedMs: number;
  readonly reply: unknown;
}

/**
 * Counts whose word a lease rests on. A node's word is as old as the last command with which it
 * wrote or confirmed the key; it is worth nothing from the moment at which a process has heard that
 * the node's clock was set forward since. What counts here is more than any client can count, so
 * one that trusts a lease with fewer votes is wrong whatever it knows.
 */
export class Votes {
  readonly #scene: Scene;
  readonly #scenario: Scenario;
  readonly #steps = new Map<SimulatedNode, Step[]>();
  readonly #confirmed = new Map<SimulatedNode, Map<string, number>>();
  readonly #heard = new Map<SimulatedProcess, Map<SimulatedNode, Heard>>();
  /** Their own clocks were set or held: they cannot tell a node's step from their own. */
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

  /** Whoever is named in a command and holds a key after it has the node's word. */
  onExecuted(node: SimulatedNode, command: readonly string[]): void {
    for (const key of this.#scenario.work.resources) {
      const value = node.server.data.get(key);
      if (value === undefined) continue;
      const { owner } = ownerAndFence(value);
      // By its name, or by the whole value.
      if (!command.includes(owner) && !command.includes(value)) continue;
      const confirmed = this.#confirmed.get(node) ?? new Map<string, number>();
      confirmed.set(owner, this.#scene.nowMs);
      this.#confirmed.set(node, confirmed);
    }
  }

  /** Returns whether it told of a step forward that nobody can have missed. */
  onHeard(machine: SimulatedProcess, node: SimulatedNode, heard: HeardReply): boolean {
    const { incarnation, sentMs, executedMs, reply } = heard;
    if (!hasTime(reply)) return false;
    this.#greatestTripMs = Math.max(this.#greatestTripMs, this.#scene.nowMs - sentMs);
    const nodes = this.#heard.get(machine) ?? new Map<SimulatedNode, Heard>();
    this.#heard.set(machine, nodes);
    const before = nodes.get(node);
    // Another process on the node begins anew: nobody knows what its clock did in between.
    const isSame = before?.incarnation === incarnation;
    const stepMs = isSame ? this.#stepBetween(node, before.executedMs, executedMs) : undefined;
    const last = isSame ? before.stepMs : -Infinity;
    nodes.set(node, { incarnation, executedMs, stepMs: stepMs ?? last });
    return stepMs !== undefined && !this.#unsure.has(machine);
  }

  /** How many nodes gave their word for it, as far as its process can still rely on it. */
  count({ machine, owner, heldSinceMs }: AttemptRecord): number {
    let count = 0;
    const heard = this.#unsure.has(machine) ? undefined : this.#heard.get(machine);
    for (const [node, confirmed] of this.#confirmed) {
      const stepMs = heard?.get(node)?.stepMs ?? -Infinity;
      const confirmedMs = confirmed.get(owner) ?? -Infinity;
      if (confirmedMs >= heldSinceMs && confirmedMs >= stepMs) count += 1;
    }
    return count;
  }

  /** When the last of the steps was that add up to one too great for any delay to explain. */
  #stepBetween(node: SimulatedNode, fromMs: number, untilMs: number): number | undefined {
    const steps = this.#steps.get(node)?.filter(({ atMs }) => atMs > fromMs && atMs <= untilMs);
    const last = steps?.at(-1);
    if (steps === undefined || last === undefined) return undefined;
    const { driftFactor, driftFixedMs } = this.#scenario.store;
    const trustedMs = 3 * (this.#greatestTripMs / 2 + 1) + driftFixedMs;
    const allowedMs = trustedMs + driftFactor * (this.#scene.nowMs - fromMs);
    const sumMs = steps.reduce((sum, { byMs }) => sum + byMs, 0);
    // Twice, because an earlier step back may have been too small to be seen.
    return sumMs > 2 * allowedMs ? last.atMs : undefined;
  }
}

/** Replies of the scripts with fences tell the node's time; those of a batch at their head. */
function hasTime(reply: unknown): boolean {
  if (Array.isArray(reply)) return hasTime(reply[0]);
  return typeof reply === "string" && /^[SGHQKNBV] \d+ \d+ /.test(reply);
}
