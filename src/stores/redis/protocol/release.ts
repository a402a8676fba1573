/**
 * Deletes an owner's keys on all nodes: when a lease is released, and after a failed attempt.
 *
 * Problem: a release must reach every node that may have a key, but must not wait for a node that
 * is down. A late acquire may set a key after the release has run.
 *
 * Idea: the release goes to all nodes except those that certainly have nothing. Its caller gets the
 * outcome as soon as it is certain: a quorum deleted the keys, or so many lacked them that the lock
 * was taken. The release is sent again to a node that did not confirm it (owed-releases.ts). If a
 * grant arrives late, a release that was sent later on the same connection deletes its keys.
 * Otherwise the node receives one more release.
 *
 * Limits: safety does not depend on a release, because keys expire. A missing key proves nothing if
 * an earlier run of the same request may have deleted it.
 */

import type { ReleaseOutcome } from "../../../core/store.ts";
import type { PlaceLeft } from "../commands/operation.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { ReleaseReply } from "../commands/operation.ts";
import type { RedisGrant } from "./grant.ts";
import { endsDebt, type Debt } from "./owed-releases.ts";
import type { Quorum } from "./quorum.ts";
import { indicesIn, sizeOf, type NodeSet } from "./node-set.ts";
import type { Round, RoundListener } from "./round.ts";

export interface ReleaseRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  /** Longest TTL that the keys may have been given. @default ttlMs */
  readonly lifeMs?: number;
  /** Fence of the grant, if there is one. */
  readonly fenceNumber?: number;
  readonly place: PlaceLeft;
  /** Nodes that certainly have no key of this owner: they get no release. */
  readonly without?: NodeSet;
  /** Nodes to which the acquire was not sent, because they were silent: they get no release. */
  readonly skipped?: NodeSet;
  /** Nodes that just timed out. They get the release, but nothing waits for their replies. */
  readonly silent?: NodeSet;
}

/** A release that has begun. */
export interface BegunRelease {
  /**
   * Called when a grant arrives late. True if our release was sent after the acquire on the same
   * connection and has no reply yet: the release will delete the keys of that grant.
   */
  covers(index: number): boolean;
}

/**
 * Deletes the owner's keys on every node, including nodes that failed or never replied. Resolves as
 * soon as the outcome is certain, at the latest after the node timeout; never rejects.
 */
export function release(
  quorum: Quorum,
  grant: RedisGrant,
  place: PlaceLeft = "",
  skipped = 0,
): Promise<ReleaseOutcome> {
  const { keys, owner, ttlMs, lifeMs, fenceNumber } = grant;
  const request = { keys, owner, ttlMs, lifeMs, fenceNumber, place, skipped };
  return new Promise((resolve) => {
    const begun = new Release(quorum, request, true, resolve);
    grant.end(begun);
    begun.start();
  });
}

/**
 * Cleans up after a failed attempt. Resolves when every node has replied or timed out. Does not
 * wait for nodes that timed out in the attempt.
 */
export function releaseAll(
  quorum: Quorum,
  request: ReleaseRequest,
  onBegun: (begun: BegunRelease) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const begun = new Release(quorum, request, false, () => resolve());
    onBegun(begun);
    begun.start();
  });
}

/** Sends a release to one node without waiting: its grant arrived after the attempt had failed. */
export function releaseOn(quorum: Quorum, index: number, request: ReleaseRequest): void {
  const node = quorum.nodes[index];
  if (node === undefined) return;
  const call = quorum.calls.release(request.keys, request.owner, request.place);
  const { ttlMs, lifeMs = ttlMs } = request;
  const debt = quorum.owed.owe(node, call, quorum.clock.monotonicMs(), lifeMs);
  const settle = (_: number, reply: NodeReply<ReleaseReply>): void => {
    if (endsDebt(reply)) quorum.owed.settle(debt);
  };
  node.run(call, { isWanted: () => true, settle }, index);
}

const released: ReleaseOutcome = { released: true };

/**
 * perf (sequential): a release is the listener of its own round, which saves objects per release.
 */
class Release implements RoundListener<ReleaseReply>, BegunRelease {
  readonly #quorum: Quorum;
  readonly #call: NodeCall<ReleaseReply>;
  readonly #sentMs: number;
  /** Nodes that get the release. */
  readonly #receivers: NodeSet;
  readonly #request: ReleaseRequest;
  /**
   * If true, resolves as soon as the outcome is certain. If false, when all nodes replied or timed
   * out.
   */
  readonly #untilCertain: boolean;
  readonly #resolve: (outcome: ReleaseOutcome) => void;
  #round: Round<ReleaseReply> | undefined;
  #debts: (Debt | undefined)[] | undefined;
  #left: number;
  /** Nodes that have not replied, including those that timed out. */
  #unanswered: NodeSet = 0;
  /** Nodes whose grant arrived late, and whose keys this release should delete. */
  #grantedLate: NodeSet = 0;
  /** Nodes whose replies this release does not wait for. */
  readonly #silent: NodeSet;
  /** Number of nodes that had all the owner's keys, and deleted them. */
  #deleted = 0;
  /**
   * Number of nodes that lacked a key when the request ran for the first time. In a second run a
   * missing key proves nothing: the first run may have deleted it.
   */
  #missing = 0;

  constructor(
    quorum: Quorum,
    request: ReleaseRequest,
    untilCertain: boolean,
    resolve: (outcome: ReleaseOutcome) => void,
  ) {
    const { keys, owner, place, fenceNumber, without = 0, skipped = 0, silent = 0 } = request;
    this.#call = quorum.calls.release(keys, owner, place, fenceNumber);
    this.#sentMs = quorum.clock.monotonicMs();
    this.#receivers = quorum.rounds.all & ~(without | skipped);
    this.#left = sizeOf(this.#receivers);
    this.#silent = silent & this.#receivers;
    this.#quorum = quorum;
    this.#request = request;
    this.#untilCertain = untilCertain;
    this.#resolve = resolve;
  }

  start(): void {
    if (this.#left === 0) return this.#resolve(this.#outcome());
    this.#unanswered = this.#receivers;
    const { rounds, fields } = this.#quorum;
    const { timeoutMs } = fields.of(this.#request.ttlMs);
    this.#round =
      this.#receivers === rounds.all
        ? rounds.toQuorum(this.#call, timeoutMs, this, this.#sentMs)
        : rounds.toSome(this.#receivers, this.#call, timeoutMs, this);
    if (this.#silent === 0) return;
    for (const index of indicesIn(this.#silent)) this.#owe(index);
    this.#left -= sizeOf(this.#silent);
    if (this.#left === 0) this.#finish();
  }

  covers(index: number): boolean {
    const bit = 1 << index;
    if ((this.#unanswered & bit) === 0 || this.#quorum.nodes[index]?.keepsOrder !== true)
      return false;
    this.#grantedLate |= bit;
    return true;
  }

  wanted(): boolean {
    return true;
  }

  onReply(index: number, reply: NodeReply<ReleaseReply>, late: boolean): void {
    const debt = this.#debts?.[index];
    if (!isTimeOut(reply)) this.#onAnswer(index, reply);
    if (!endsDebt(reply)) this.#owe(index);
    else if (debt !== undefined) this.#quorum.owed.settle(debt);
    if (late || (this.#silent & (1 << index)) !== 0) return;
    this.#left -= 1;
    if (reply.kind === "reply") {
      if (reply.reply.whole) this.#deleted += 1;
      else if (!reply.reply.repeated) this.#missing += 1;
    }
    if (this.#left > 0 && !(this.#untilCertain && this.#isCertain())) return;
    // The release is sent again to the nodes that have not replied, until they reply.
    if (this.#left > 0) {
      for (const index of indicesIn(this.#round?.pending ?? 0)) this.#owe(index);
    }
    this.#finish();
  }

  #finish(): void {
    // Skipped nodes do not receive the release any more.
    this.#unanswered &= ~(this.#round?.skipped ?? 0);
    this.#round?.end();
    this.#resolve(this.#outcome());
  }

  /**
   * Called when a node replies. If the release did not find the keys of a late grant, it ran before
   * the acquire, and the node gets another release.
   */
  #onAnswer(index: number, reply: NodeReply<ReleaseReply>): void {
    const bit = 1 << index;
    this.#unanswered &= ~bit;
    if ((this.#grantedLate & bit) === 0 || !endsDebt(reply) || isWhole(reply)) return;
    const { keys, owner, ttlMs, lifeMs = ttlMs } = this.#request;
    releaseOn(this.#quorum, index, { keys, owner, ttlMs, lifeMs, place: "" });
  }

  #isReleased(): boolean {
    return this.#deleted >= this.#quorum.size;
  }

  #isTaken(): boolean {
    return this.#missing > this.#quorum.nodes.length - this.#quorum.size;
  }

  #isCertain(): boolean {
    return this.#isReleased() || this.#isTaken();
  }

  #outcome(): ReleaseOutcome {
    if (this.#isReleased()) return released;
    return { released: false, reason: this.#isTaken() ? "taken" : "unreachable" };
  }

  #owe(index: number): void {
    const node = this.#quorum.nodes[index];
    const { ttlMs, lifeMs = ttlMs } = this.#request;
    this.#debts ??= [];
    if (node === undefined || this.#debts[index] !== undefined) return;
    this.#debts[index] = this.#quorum.owed.owe(node, this.#call, this.#sentMs, lifeMs);
  }
}

function isWhole(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "reply" && reply.reply.whole;
}

/** True if the round stopped waiting. The reply may still come. */
function isTimeOut(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "unknown" && reply.timedOut;
}
