import type { ReleaseOutcome } from "../core/store.ts";
import { ownerAndFence } from "./node/script-context.ts";
import type { SimulatedNode } from "./node/simulated-node.ts";

/** A release call that has not returned yet. */
interface Releasing {
  readonly owner: string;
  readonly resources: readonly string[];
  /** Nodes that had all keys of the lease until a command with its owner deleted them. */
  readonly deletedAt: Set<SimulatedNode>;
  /** Nodes on which a late command with its owner created a key again. */
  readonly recreatedAt: Set<SimulatedNode>;
}

interface Before {
  readonly releasing: Releasing;
  readonly held: number;
}

/**
 * Finds releases that return `taken` although a quorum had the lock until the release itself
 * deleted it.
 *
 * The cause is a driver that sends the release twice: the second run finds no key. If the client
 * trusted that reply, it would report finished work as lost.
 */
export class FalseLosses {
  readonly #quorum: number;
  readonly #report: (text: string) => void;
  readonly #underWay = new Map<string, Releasing>();
  #before: Before[] = [];

  constructor(quorum: number, report: (text: string) => void) {
    this.#quorum = quorum;
    this.#report = report;
  }

  onReleasing(owner: string, resources: readonly string[]): void {
    const sets = { deletedAt: new Set<SimulatedNode>(), recreatedAt: new Set<SimulatedNode>() };
    this.#underWay.set(owner, { owner, resources, ...sets });
  }

  onReleased(owner: string, outcome: ReleaseOutcome): void {
    const releasing = this.#underWay.get(owner);
    this.#underWay.delete(owner);
    if (releasing === undefined || outcome.released || outcome.reason !== "taken") return;
    const { resources, deletedAt, recreatedAt } = releasing;
    const deleted = [...deletedAt].filter((node) => !recreatedAt.has(node));
    if (deleted.length < this.#quorum) return;
    const where = deleted.map(({ name }) => name).join(", ");
    this.#report(`${resources.join("+")} of ${owner} is called taken, and was there: ${where}`);
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
