import type { Link } from "./network/link.ts";
import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { AttemptRecord, RecordingStore } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scenario } from "./scenario.ts";
import type { Scene } from "./scene.ts";
import type { Witness } from "./witness.ts";
import type { SimulatedClient } from "./workload/client.ts";

/** One process of a world, and what belongs to it. */
export interface Inhabitant {
  readonly machine: SimulatedProcess;
  readonly links: readonly Link[];
  readonly client: SimulatedClient;
  readonly recording: RecordingStore;
}

/** Looks for locks that are left on nodes when all is closed, and knows who is to blame. */
export class Orphans {
  readonly #scene: Scene;
  readonly #witness: Witness;
  readonly #nodes: readonly SimulatedNode[];
  readonly #scenario: Scenario;
  /** Node and owner of each lock that was set when nobody could hear of it any more. */
  readonly #strays = new Set<string>();
  readonly #setBackMs = new Map<SimulatedNode, number>();

  constructor(scene: Scene, witness: Witness, nodes: readonly SimulatedNode[], scenario: Scenario) {
    this.#scene = scene;
    this.#witness = witness;
    this.#nodes = nodes;
    this.#scenario = scenario;
  }

  onSetBack(node: SimulatedNode): void {
    this.#setBackMs.set(node, this.#scene.nowMs);
  }

  /** Its connection was gone, or its manager was closing. */
  onExecutedTooLate(node: SimulatedNode, command: readonly string[], reply: unknown): void {
    const replies: unknown[] = Array.isArray(reply) ? reply : [reply];
    const isGrant = command[0] === "SET" || replies.some((each) => String(each).startsWith("G"));
    if (!isGrant) return;
    for (const key of this.#scenario.work.resources) {
      const { owner } = ownerAndFence(node.server.data.textOf(key) ?? "");
      if (command.includes(owner)) this.#strays.add(`${node.name} ${owner}`);
    }
  }

  /** All is closed, all can be reached: a lock that is left was forgotten, unless by the dead. */
  report(inhabitants: readonly Inhabitant[]): void {
    const { resources } = this.#scenario.work;
    const living = inhabitants.filter(({ machine }) => !machine.hasCrashed);
    for (const node of this.#nodes) {
      for (const key of node.server.data.keys()) {
        if (!resources.includes(key)) continue;
        const { owner } = ownerAndFence(node.server.data.get(key) ?? "");
        const inhabitant = living.find(({ recording }) => recording.byOwner.has(owner));
        const attempt = inhabitant?.recording.byOwner.get(owner);
        if (inhabitant === undefined || attempt === undefined) continue;
        if (this.#isExcused(node, key, attempt) || wasOutOfReach(node, inhabitant)) continue;
        const text = `${attempt.machine.name} left "${key}" on ${node.name} (${owner})`;
        this.#witness.report("orphan-key", text);
      }
    }
  }

  /** Nobody could know that it was there, or that it would still be there by now. */
  #isExcused(node: SimulatedNode, key: string, attempt: AttemptRecord): boolean {
    if (this.#witness.wasAbandoned(attempt.owner)) return true;
    if (this.#strays.has(`${node.name} ${attempt.owner}`)) return true;
    if ((this.#setBackMs.get(node) ?? -1) >= attempt.startedMs) return true;
    // A node whose clock is slow keeps it beyond the time that its client counts.
    const { work, store } = this.#scenario;
    const lifeMs = Math.max(attempt.ttlMs, ...(work.lives ?? []));
    return node.server.data.pttl(key) < lifeMs * store.driftFactor;
  }
}

/**
 * What is still owed when a manager closes is sent once more, and not kept for a reconnect: a
 * driver without a connection at that moment sends nothing.
 */
function wasOutOfReach(node: SimulatedNode, { client, links }: Inhabitant): boolean {
  const connectedSinceMs = links[node.index]?.connectedSinceMs ?? Infinity;
  return connectedSinceMs > (client.closingSinceMs ?? Infinity);
}
