import type { Grant } from "../../../core/store.ts";
import type { PlaceLeft } from "../dialect.ts";

/** What was granted, and under which keys. */
export class RedisGrant implements Grant {
  readonly resources: readonly string[];
  readonly keys: readonly string[];
  readonly owner: string;
  /** The place in the nodes' queues that is given up with it. */
  readonly place: PlaceLeft;
  readonly ttlMs: number;
  readonly validityMs: number;
  /** 0 where the store does not fence. */
  readonly fenceNumber: number;
  /** The nodes that granted it. */
  readonly home: object;
  /** A bit for each node whose word it rests on. */
  votes: number;
  #confirmations = 0;
  /** Shared by what stands for the same grant. Once given back, nothing may set its keys again. */
  readonly life: { isOver: boolean };

  constructor(terms: Omit<RedisGrant, "fence" | "withFence" | "confirm" | "addVote" | "loseVote">) {
    this.resources = terms.resources;
    this.keys = terms.keys;
    this.owner = terms.owner;
    this.place = terms.place;
    this.ttlMs = terms.ttlMs;
    this.validityMs = terms.validityMs;
    this.fenceNumber = terms.fenceNumber;
    this.home = terms.home;
    this.votes = terms.votes;
    this.life = terms.life;
  }

  get fence(): bigint | undefined {
    return this.fenceNumber === 0 ? undefined : BigInt(this.fenceNumber);
  }

  withFence(fenceNumber: number): RedisGrant {
    const { resources, keys, owner, place, ttlMs, validityMs, home, votes, life } = this;
    const terms = { resources, keys, owner, place, ttlMs, validityMs, home, votes, life };
    return new RedisGrant({ ...terms, fenceNumber });
  }

  /** Confirmed anew by these nodes, and resting on them from now on. Returns which time it was. */
  confirm(nodes: readonly number[]): number {
    this.votes = votesOfNodes(nodes);
    this.#confirmations += 1;
    return this.#confirmations;
  }

  /** A node that was not waited for has confirmed as well, unless that was for an older time. */
  addVote(node: number, confirmation: number): void {
    if (confirmation === this.#confirmations) this.votes |= 1 << node;
  }

  /** One node's word is worth nothing any more; returns how many are left. */
  loseVote(node: number): number {
    this.votes &= ~(1 << node);
    let left = 0;
    for (let rest = this.votes; rest !== 0; rest &= rest - 1) left += 1;
    return left;
  }
}

/** At most 31 nodes, so that their votes fit a number. */
export function votesOfNodes(nodes: readonly number[]): number {
  let votes = 0;
  for (const node of nodes) votes |= 1 << node;
  return votes;
}
