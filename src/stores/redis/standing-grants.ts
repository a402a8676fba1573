import type { ReplicationError } from "../../core/errors.ts";
import type { Grant, StoreContext } from "../../core/store.ts";
import type { RedisNode } from "./node.ts";
import { partsOf } from "./ordered-groups.ts";
import { RedisGrant } from "./quorum/grant.ts";
import type { Quorum } from "./quorum/quorum.ts";

/** What leases rest on the nodes of one quorum, and what becomes of them when one is in doubt. */
export class StandingGrants {
  readonly #context: StoreContext;
  readonly #quorum: Quorum;

  constructor(context: StoreContext, quorum: Quorum) {
    this.#context = context;
    this.#quorum = quorum;
  }

  /** Whether any lease is held here. */
  get any(): boolean {
    let held = false;
    this.#context.reconsider((grant) => {
      held ||= this.#partsHere(grant).length > 0;
      return undefined;
    });
    return held;
  }

  /**
   * Keys set before a step forward may be gone early: a lease loses that node's vote, and is lost
   * where too few are left. A step back only keeps keys longer.
   */
  onClockStep(node: RedisNode, stepMs: number): void {
    this.#quorum.events.emit("clock-jump", { node: node.name, stepMs });
    if (stepMs < 0) return;
    this.#context.reconsider((grant) => (this.#standsWithout(node, grant) ? undefined : "clock"));
  }

  /**
   * What the node granted before may be unknown there by now. A lease loses its vote, and has to be
   * proven again where too few are left.
   */
  onReplaced(node: RedisNode, cause: ReplicationError): void {
    this.#quorum.events.emit("node-replaced", { node: node.name, why: cause.message });
    this.#context.doubt((grant) => (this.#standsWithout(node, grant) ? undefined : cause));
  }

  #standsWithout(node: RedisNode, grant: Grant): boolean {
    const index = this.#quorum.nodes.indexOf(node);
    return this.#partsHere(grant).every((part) => part.loseVote(index) >= this.#quorum.size);
  }

  #partsHere(grant: Grant): readonly RedisGrant[] {
    return grantsOf(grant).filter(({ home }) => home === this.#quorum);
  }
}

function grantsOf(grant: Grant): readonly RedisGrant[] {
  if (grant instanceof RedisGrant) return [grant];
  return partsOf(grant)?.flatMap((part) => grantsOf(part.grant)) ?? [];
}
