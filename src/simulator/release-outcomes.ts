import type { ReleaseOutcome } from "../core/store.ts";
import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";
import type { Witness } from "./witness.ts";

/** A release call that has not returned yet. */
interface Releasing {
  readonly owner: string;
  readonly resources: readonly string[];
  /** Nodes that had all keys of the lease until a command with its owner deleted the keys. */
  readonly deletedAt: Set<SimulatedNode>;
  /** Nodes on which a late command with the lease's owner created a key again. */
  readonly recreatedAt: Set<SimulatedNode>;
  /** Nodes that had no key of the lease after a command with the lease's owner. */
  readonly goneAt: Set<SimulatedNode>;
}

/** Number of keys that a node had for a lease before a command. */
interface Before {
  readonly releasing: Releasing;
  readonly held: number;
}

/**
 * Compares the outcomes of releases with the keys on the nodes.
 *
 * - `false-loss`: the outcome is `taken`, although a quorum had the lock until the release itself
 *   deleted it. A driver that sends the release twice can cause this: the second run finds no key.
 *   A client that trusts the second reply reports finished work as lost.
 * - `false-release`: the outcome is `released`, although the lock was missing on fewer nodes than a
 *   quorum since the call.
 */
export class ReleaseOutcomes {
  readonly #nodes: readonly SimulatedNode[];
  readonly #witness: Pick<Witness, "report">;
  readonly #underWay = new Map<string, Releasing>();
  #before: Before[] = [];

  constructor(nodes: readonly SimulatedNode[], witness: Pick<Witness, "report">) {
    this.#nodes = nodes;
    this.#witness = witness;
  }

  onReleasing(owner: string, resources: readonly string[]): void {
    const set = (): Set<SimulatedNode> => new Set();
    const sets = { deletedAt: set(), recreatedAt: set(), goneAt: set() };
    this.#underWay.set(owner, { owner, resources, ...sets });
  }

  onReleased(owner: string, outcome: ReleaseOutcome): void {
    const releasing = this.#underWay.get(owner);
    this.#underWay.delete(owner);
    if (releasing === undefined) return;
    const quorum = Math.floor(this.#nodes.length / 2) + 1;
    const what = `${releasing.resources.join("+")} of ${owner}`;
    if (outcome.released) {
      const without = this.#nodes.filter(
        (node) => releasing.goneAt.has(node) || heldAt(node, releasing) === 0,
      );
      if (outcome.handedOver === true || without.length >= quorum) return;
      const count = `${without.length} of ${this.#nodes.length} nodes`;
      this.#witness.report(
        "false-release",
        `${what} is called released, and only ${count} are without it`,
      );
      return;
    }
    if (outcome.reason !== "taken") return;
    const { deletedAt, recreatedAt } = releasing;
    const deleted = [...deletedAt].filter((node) => !recreatedAt.has(node));
    if (deleted.length < quorum) return;
    const where = deleted.map(({ name }) => name).join(", ");
    this.#witness.report("false-loss", `${what} is called taken, and was there: ${where}`);
  }

  onExecuting(node: SimulatedNode, command: readonly string[]): void {
    this.#before = [];
    for (const releasing of this.#underWay.values()) {
      if (!names(command, releasing.owner)) continue;
      this.#before.push({ releasing, held: heldAt(node, releasing) });
    }
  }

  onExecuted(node: SimulatedNode): void {
    for (const { releasing, held } of this.#before) {
      const left = heldAt(node, releasing);
      if (left > held) releasing.recreatedAt.add(node);
      if (left === 0) releasing.goneAt.add(node);
      if (left === 0 && held === releasing.resources.length) releasing.deletedAt.add(node);
    }
  }
}

/** True if the command contains the owner, alone or at the start of a stored value. */
function names(command: readonly string[], owner: string): boolean {
  return command.some((word) => word === owner || word.startsWith(`${owner}|`));
}

function heldAt(node: SimulatedNode, { owner, resources }: Releasing): number {
  return resources.filter((resource) => {
    const value = node.server.data.get(resource);
    return value !== undefined && ownerAndFence(value).owner === owner;
  }).length;
}
