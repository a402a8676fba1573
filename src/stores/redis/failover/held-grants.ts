import type { ReplicationError } from "../../../core/errors.ts";
import type { Grant, StoreContext } from "../../../core/store.ts";
import type { NodeObserver, RedisNode } from "../node/node.ts";
import { partsOf } from "../protocol/ordered-groups.ts";
import { RedisGrant, type SharedGrantFields } from "../protocol/grant.ts";

/** Nodes and size of a quorum, and the object that all grants of the quorum share. */
interface Members {
  readonly nodes: readonly RedisNode[];
  readonly size: number;
  readonly fields: SharedGrantFields;
}

/**
 * Leases that rest on the nodes of one quorum. Removes the votes of a node whose server was
 * replaced or whose clock was set forward.
 */
export class HeldGrants implements NodeObserver {
  readonly #context: StoreContext;
  readonly #members: Members;

  constructor(context: StoreContext, members: Members) {
    this.#context = context;
    this.#members = members;
  }

  /** True if any lease is held on this quorum. */
  get any(): boolean {
    let held = false;
    this.#context.reconsider((grant) => {
      held ||= this.#partsHere(grant).length > 0;
      return undefined;
    });
    return held;
  }

  /**
   * Called when a server's clock was set. A step forward may have expired keys early: each lease
   * loses that node's vote, and is lost if less than a quorum is left. After a step back, keys only
   * live longer.
   */
  onClockStep(node: RedisNode, stepMs: number): void {
    this.#context.events.emit("clock-jump", { node: node.name, stepMs });
    if (stepMs < 0) return;
    this.#context.reconsider((grant) =>
      this.#keepsQuorumWithout(node, grant) ? undefined : "clock",
    );
  }

  /**
   * Called when another server replies for a node. That server may lack earlier grants. Each lease
   * loses that node's vote, and must be proven again if less than a quorum is left.
   */
  onReplaced(node: RedisNode, cause: ReplicationError): void {
    this.#context.events.emit("node-replaced", { node: node.name, why: cause.message });
    this.#context.doubt((grant) => (this.#keepsQuorumWithout(node, grant) ? undefined : cause));
  }

  #keepsQuorumWithout(node: RedisNode, grant: Grant): boolean {
    const { nodes, size } = this.#members;
    const index = nodes.indexOf(node);
    return this.#partsHere(grant).every((part) => part.loseVote(index) >= size);
  }

  #partsHere(grant: Grant): readonly RedisGrant[] {
    return grantsOf(grant).filter(({ home }) => home === this.#members.fields);
  }
}

function grantsOf(grant: Grant): readonly RedisGrant[] {
  if (grant instanceof RedisGrant) return [grant];
  return partsOf(grant)?.flatMap((part) => grantsOf(part.grant)) ?? [];
}
