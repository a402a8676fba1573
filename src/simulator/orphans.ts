import type { Link } from "./network/link.ts";
import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { AttemptRecord, RecordingStore } from "./process/recording-store.ts";
import type { SimulatedProcess } from "./process/simulated-process.ts";
import type { Scenario } from "./scenario.ts";
import type { Scene } from "./scene.ts";
import type { Witness } from "./witness.ts";
import type { SimulatedClient } from "./workload/client.ts";

/** One client process of a world with its parts. */
export interface Inhabitant {
  readonly machine: SimulatedProcess;
  readonly links: readonly Link[];
  readonly client: SimulatedClient;
  readonly recording: RecordingStore;
}

/** Finds locks that are left on nodes after all managers are closed. */
export class Orphans {
  readonly #scene: Scene;
  readonly #witness: Witness;
  readonly #nodes: readonly SimulatedNode[];
  readonly #scenario: Scenario;
  /**
   * Name of the node and owner ("node owner") of each lock that was set when its client could no
   * longer detect it.
   */
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

  /** Called when a command ran after its connection closed or while its manager closed. */
  onExecutedTooLate(node: SimulatedNode, command: readonly string[], reply: unknown): void {
    const isGrant = command[0] === "SET" || /^G( |$)/m.test(String(reply));
    if (!isGrant) return;
    for (const key of this.#scenario.work.resources) {
      const { owner } = ownerAndFence(node.server.data.textOf(key) ?? "");
      if (command.includes(owner)) this.#strays.add(`${node.name} ${owner}`);
    }
  }

  /**
   * Reports leaked locks. All managers are closed and all nodes are reachable. So each remaining
   * lock was leaked, unless its client crashed or could not detect it.
   */
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

  /** True if the client could not detect that the key was set or that it still exists. */
  #isExcused(node: SimulatedNode, key: string, attempt: AttemptRecord): boolean {
    if (this.#witness.wasAbandoned(attempt.owner)) return true;
    if (this.#strays.has(`${node.name} ${attempt.owner}`)) return true;
    if ((this.#setBackMs.get(node) ?? -1) >= attempt.startedMs) return true;
    // By the client's clock, a node with a slow clock keeps the key slightly longer than the TTL.
    const { work, store } = this.#scenario;
    const lifeMs = Math.max(attempt.ttlMs, ...(work.lives ?? []));
    return node.server.data.pttl(key) < lifeMs * store.driftFactor;
  }
}

/**
 * True if the client had no connection to the node at some time since it began to close. A driver
 * without a connection does not send the clean-up, and the client does not repeat it.
 */
function wasOutOfReach(node: SimulatedNode, { client, links }: Inhabitant): boolean {
  const connectedSinceMs = links[node.index]?.connectedSinceMs ?? Infinity;
  return connectedSinceMs > (client.closingSinceMs ?? Infinity);
}
