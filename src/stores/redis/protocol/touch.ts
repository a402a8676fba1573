import { QuorumError, type HoldfastError, type VoteKind } from "../../../core/errors.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import type { TouchReply } from "../commands/operation.ts";
import { newBallots, tallyOf, votesOf, type Ballot } from "./ballot.ts";
import { sizeOf, type NodeSet } from "./node-set.ts";
import { addVote, confirm, type RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import type { Round, RoundListener } from "./round.ts";
import { nodeTimeoutMs } from "./store-settings.ts";

export type TouchOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly error: HoldfastError };

/**
 * Sends a request to every node: extends a grant (`ttlMs` > 0), proves it (0), or raises the stored
 * fence to `fence`. The outcome is `gone` if so many nodes lack the grant that another owner may
 * hold the lock. It is `failed` if too many nodes fail or may not vote.
 */
export function touch(
  quorum: Quorum,
  grant: RedisGrant,
  ttlMs: number,
  action: "extend" | "prove",
  fence: number = grant.fenceNumber,
): Promise<TouchOutcome> {
  return new Promise((resolve) => new Touch(quorum, grant, ttlMs, action, fence, resolve).start());
}

/** perf (renew): a touch is the listener of its own round, which saves objects per renewal. */
class Touch implements RoundListener<TouchReply> {
  readonly #quorum: Quorum;
  readonly #call: NodeCall<TouchReply>;
  readonly #timeoutMs: number;
  readonly #sentMs: number;
  readonly #grant: RedisGrant;
  readonly #ttlMs: number;
  readonly #action: string;
  readonly #resolve: (outcome: TouchOutcome) => void;
  readonly #ballots: Ballot[];
  #round: Round<TouchReply> | undefined;
  #decided = false;
  #confirmation = -1;

  constructor(
    quorum: Quorum,
    grant: RedisGrant,
    ttlMs: number,
    action: string,
    fence: number,
    resolve: (outcome: TouchOutcome) => void,
  ) {
    this.#sentMs = quorum.clock.monotonicMs();
    this.#timeoutMs = nodeTimeoutMs(quorum.options, Math.max(ttlMs, grant.ttlMs));
    grant.livesFor(ttlMs);
    this.#call = quorum.calls.touch(grant.keys, grant.owner, ttlMs, fence);
    this.#quorum = quorum;
    this.#grant = grant;
    this.#ttlMs = ttlMs;
    this.#action = action;
    this.#resolve = resolve;
    this.#ballots = newBallots(quorum.nodes.length);
  }

  start(): void {
    const { rounds } = this.#quorum;
    this.#round = rounds.toQuorum(this.#call, this.#timeoutMs, this, this.#sentMs);
  }

  /**
   * True if a delayed request is of use. For an extension also after the outcome: it still extends
   * the key on a slow node, and never creates a key.
   */
  wanted(): boolean {
    return !this.#decided || this.#ttlMs > 0;
  }

  onReply(index: number, reply: NodeReply<TouchReply>): void {
    const ballot = this.#ballots[index];
    if (ballot === undefined) return;
    if (this.#decided) {
      const isDone = reply.kind === "reply" && reply.reply.kind === "done";
      if (isDone) addVote(this.#quorum, this.#grant, index, this.#confirmation);
      return;
    }
    noteTouch(this.#quorum, index, ballot, reply, this.#sentMs);
    takeBackStepped(this.#quorum.nodes, this.#ballots);
    const votes = nodesWith(this.#ballots, "granted");
    const refusals = nodesWith(this.#ballots, "held");
    const { pending } = tallyOf(this.#ballots);
    const outcome = outcomeOf(this.#quorum, votes, refusals, pending);
    if (outcome === undefined) return;
    this.#decided = true;
    this.#round?.end();
    if (outcome === "done") {
      this.#confirmation = confirm(this.#quorum, this.#grant, votes, this.#sentMs, this.#ttlMs);
    }
    if (outcome !== "failed") return this.#resolve(outcome === "done" ? done : gone);
    const error = quorumError(this.#quorum, this.#grant, this.#ballots, this.#action);
    this.#resolve({ kind: "failed", error });
  }
}

const done: TouchOutcome = { kind: "done" };
const gone: TouchOutcome = { kind: "gone" };

/** Records a node's reply to a request sent at `sinceMs`, or the reason for a missing reply. */
export function noteTouch(
  quorum: Quorum,
  index: number,
  ballot: Ballot,
  reply: NodeReply<TouchReply>,
  sinceMs: number,
): void {
  ballot.ms = quorum.clock.monotonicMs() - sinceMs;
  if (reply.kind !== "reply") {
    ballot.vote = reply.kind === "unknown" ? "unknown" : "failed";
    ballot.cause = reply.error;
  } else if (reply.reply.kind === "blank") {
    ballot.vote = "blank";
    ballot.cause = quorum.admissions.noticeBlank(index, reply.reply.report);
  } else if (reply.reply.kind === "refused") {
    ballot.vote = "failed";
    ballot.cause = reply.reply.error;
  } else {
    ballot.vote = reply.reply.kind === "done" ? "granted" : "held";
    ballot.clockEpoch = quorum.nodes[index]?.health.clockEpoch ?? 0;
  }
}

/**
 * Removes votes given before a forward step of the node's clock, because the key may have expired
 * early. Returns the nodes whose votes were removed.
 */
export function takeBackStepped(nodes: readonly RedisNode[], ballots: readonly Ballot[]): NodeSet {
  let stepped = 0;
  for (let index = 0; index < ballots.length; index += 1) {
    const ballot = ballots[index];
    if (ballot?.vote !== "granted" || ballot.clockEpoch === nodes[index]?.health.clockEpoch)
      continue;
    ballot.vote = "unknown";
    ballot.cause = new Error("its clock was set forward after it had answered");
    stepped |= 1 << index;
  }
  return stepped;
}

function nodesWith(ballots: readonly Ballot[], vote: VoteKind): NodeSet {
  let nodes = 0;
  for (let index = 0; index < ballots.length; index += 1) {
    if (ballots[index]?.vote === vote) nodes |= 1 << index;
  }
  return nodes;
}

/**
 * Returns the outcome, from the nodes that have the grant (`votes`), the nodes that lack it
 * (`refusals`), and the number of pending nodes. Undefined while the outcome is open. A server that
 * was given as two nodes counts once.
 */
export function outcomeOf(
  quorum: Pick<Quorum, "nodes" | "size" | "duplicates">,
  votes: NodeSet,
  refusals: NodeSet,
  pending: number,
): "done" | "gone" | "failed" | undefined {
  const { size } = quorum;
  const done = sizeOf(quorum.duplicates.distinct(votes));
  const gone = sizeOf(quorum.duplicates.distinct(refusals));
  const nodeCount = quorum.nodes.length;
  if (done >= size) return "done";
  if (gone > nodeCount - size) return "gone";
  // Waits while `done` or `gone` is possible: a lease that is gone must be noticed.
  const possible = done + pending >= size || gone + pending > nodeCount - size;
  return possible && pending > 0 ? undefined : "failed";
}

export function quorumError(
  quorum: Quorum,
  grant: RedisGrant,
  ballots: readonly Ballot[],
  action: string,
): HoldfastError {
  const { nodes, size } = quorum;
  return new QuorumError(action, grant.resources, votesOf(nodes, ballots), {
    quorum: size,
    cause: quorum.duplicates.setupError ?? ballots.find(({ cause }) => cause !== undefined)?.cause,
  });
}
