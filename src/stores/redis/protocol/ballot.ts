import type { Vote, VoteKind } from "../../../core/errors.ts";
import type { NodeFailure, NodeReply } from "../node/node-reply.ts";
import type { RedisNode } from "../node/node.ts";
import type { AcquireReply } from "../commands/operation.ts";
import type { NodeSet } from "./node-set.ts";
import type { TimedOut } from "./round.ts";

/**
 * State of one node in an attempt or a renewal. The final fence is the greatest one that the nodes
 * of an attempt granted: a quorum has to store it.
 */
export class Ballot {
  vote: VoteKind | "pending" = "pending";
  cause: unknown = undefined;
  ms = 0;
  /** Fence that the node granted; 0 if it has not granted. */
  fence = 0;
  /** True if the node stores the final fence: its vote counts towards the quorum. */
  confirmed = false;
  /** True if the node can no longer confirm the final fence. */
  out = false;
  /** Number of acquire requests sent to the node. */
  sent = 1;
  /** True if the node may have set our keys, or may still set them. */
  maybeApplied = true;
  /** True if the node timed out and has not replied since. */
  silent = false;
  runId: string | undefined = undefined;
  /** Time until the node may grant the lock, if it replied `held`. */
  freeInMs: number | undefined = undefined;
  /** Owner of the lock according to the node's reply `held`. */
  heldBy: string | undefined = undefined;
  /**
   * Number of waiters ahead of this call in the node's queue; undefined if the call has no queue
   * entry.
   */
  rank: number | undefined = undefined;
  /** Number of forward steps of the node's clock when its vote was recorded. */
  clockEpoch = 0;
}

export function newBallots(count: number): Ballot[] {
  const ballots: Ballot[] = [];
  for (let index = 0; index < count; index += 1) ballots.push(new Ballot());
  return ballots;
}

export function quorumOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2) + 1;
}

const notWaitedFor = new Error("not waited for: the outcome was certain without it");

/** Returns the votes for errors and events. A node whose reply was not needed counts as unknown. */
export function votesOf(nodes: readonly RedisNode[], ballots: readonly Ballot[]): Vote[] {
  return ballots.map((ballot, index) => {
    const cause = ballot.cause ?? (ballot.vote === "pending" ? notWaitedFor : undefined);
    return {
      node: nodes[index]?.name ?? `node-${index + 1}`,
      vote: ballot.vote === "pending" ? "unknown" : ballot.vote,
      ms: ballot.ms,
      ...(cause === undefined ? {} : { cause }),
    };
  });
}

export function countOf(ballots: readonly Ballot[], vote: Ballot["vote"]): number {
  let count = 0;
  for (const ballot of ballots) if (ballot.vote === vote) count += 1;
  return count;
}

export interface Tally {
  granted: number;
  held: number;
  pending: number;
}

export function tallyOf(ballots: readonly Ballot[]): Tally {
  const tally = { granted: 0, held: 0, pending: 0 };
  for (const { vote } of ballots) {
    if (vote === "granted") tally.granted += 1;
    else if (vote === "pending") tally.pending += 1;
    else if (vote === "held") tally.held += 1;
  }
  return tally;
}

/**
 * True if a quorum can no longer grant, and the reason is certain. The reason is contention if a
 * quorum replied granted or held, and a fault if too many nodes failed. False while a reply could
 * still decide between contention and a fault.
 */
export function isLost({ granted, held, pending }: Tally, size: number): boolean {
  if (granted + pending >= size) return false;
  return granted + held >= size || granted + held + pending < size;
}

export function greatestFence(ballots: readonly Ballot[]): number {
  let greatest = 0;
  for (const { vote, fence } of ballots) {
    if (vote === "granted" && fence > greatest) greatest = fence;
  }
  return greatest;
}

/** Sets `confirmed` for the nodes that granted the final fence: they already store it. */
export function confirmGrantsOf(ballots: readonly Ballot[], fence: number): void {
  for (const ballot of ballots) {
    ballot.confirmed = ballot.vote === "granted" && ballot.fence === fence;
  }
}

/**
 * Returns the nodes that need the raise (update of the stored fence to the final one). Marks every
 * other unconfirmed node as `out`.
 */
export function raisable(ballots: readonly Ballot[]): NodeSet {
  let nodes = 0;
  for (const [index, ballot] of ballots.entries()) {
    // Nodes without a reply are included: their grant may be on its way.
    const mayHaveGranted = ["granted", "pending", "unknown"].includes(ballot.vote);
    if (mayHaveGranted && !ballot.confirmed) nodes |= 1 << index;
    else ballot.out = !ballot.confirmed;
  }
  return nodes;
}

export function confirmedOf(ballots: readonly Ballot[]): number {
  let count = 0;
  for (const ballot of ballots) if (ballot.confirmed) count += 1;
  return count;
}

/** Returns the nodes whose votes count. */
export function confirmedNodes(ballots: readonly Ballot[]): NodeSet {
  let nodes = 0;
  for (let index = 0; index < ballots.length; index += 1) {
    if (ballots[index]?.confirmed === true) nodes |= 1 << index;
  }
  return nodes;
}

/**
 * Removes votes given before a forward step of the node's clock, because the key may have expired
 * early. Returns the number of removed votes.
 */
export function dropStepped(nodes: readonly RedisNode[], ballots: readonly Ballot[]): number {
  let dropped = 0;
  let index = -1;
  for (const ballot of ballots) {
    index += 1;
    if (!ballot.confirmed || ballot.clockEpoch === nodes[index]?.health.clockEpoch) continue;
    ballot.confirmed = false;
    ballot.out = true;
    dropped += 1;
  }
  return dropped;
}

/** True if the node granted exactly this fence. */
export function isGrantOf(reply: NodeReply<AcquireReply>, fence: number): boolean {
  return reply.kind === "reply" && reply.reply.kind === "granted" && reply.reply.fence === fence;
}

/** Nodes that the release after a failed attempt can skip, or need not wait for. */
interface LeftBehind {
  /**
   * Nodes that certainly have none of our keys: they received no request, or replied `held` to the
   * only one. They need no release.
   */
  readonly without: NodeSet;
  /** Nodes that timed out. */
  readonly silent: NodeSet;
}

export function leftBehind(ballots: readonly Ballot[]): LeftBehind {
  let without = 0;
  let silent = 0;
  for (const [index, ballot] of ballots.entries()) {
    if (!ballot.maybeApplied || (ballot.vote === "held" && ballot.sent === 1)) {
      without |= 1 << index;
    }
    if (ballot.silent) silent |= 1 << index;
  }
  return { without, silent };
}

/** Records why the acquire got no reply. */
export function noteFailure(ballot: Ballot, failure: NodeFailure): void {
  const neverSent = failure.kind === "unsent" && ballot.sent === 1;
  ballot.maybeApplied = !neverSent;
  ballot.vote = neverSent || failure.kind === "error" ? "failed" : "unknown";
  ballot.cause = failure.error;
}

/** Records the reply to a raise. `isDone` is true if the node stores the final fence. */
export function noteRaised(ballot: Ballot, isDone: boolean, clockEpoch = 0): void {
  ballot.confirmed = isDone;
  ballot.out = !isDone;
  ballot.clockEpoch = clockEpoch;
  ballot.silent = false;
}

/**
 * Records a failed raise (update of the stored fence). The vote is `unknown`: the node granted, and
 * no other owner is involved.
 */
export function noteRaiseFailure(ballot: Ballot, failure: NodeFailure): void {
  ballot.out = true;
  ballot.vote = "unknown";
  ballot.cause = failure.error;
}

/**
 * Marks all nodes that timed out, before the first of them is counted: it may end the attempt, and
 * the release that follows must not wait for any of them.
 */
export function noteSilent(ballots: readonly Ballot[], timedOut: readonly TimedOut[]): void {
  for (const { index, reply } of timedOut) {
    const ballot = ballots[index];
    if (ballot === undefined) continue;
    ballot.silent = true;
    ballot.cause ??= reply.error;
  }
}

/** Records a grant. Returns false if it contradicts an earlier reply of the node. */
export function noteGrant(ballot: Ballot, fence: number, runId: string | undefined): boolean {
  if (ballot.vote === "held" || (ballot.fence !== 0 && ballot.fence !== fence)) {
    // The key was deleted and set again between the two replies, so neither of them counts.
    ballot.vote = "failed";
    ballot.cause = new Error("the node gave two different answers");
    ballot.confirmed = false;
    ballot.out = true;
    return false;
  }
  ballot.vote = "granted";
  ballot.cause = undefined;
  ballot.fence = fence;
  ballot.runId = runId;
  return true;
}

/** Records a refusal: another owner holds the lock, or another waiter is ahead. */
export function noteHeld(ballot: Ballot, reply: Extract<AcquireReply, { kind: "held" }>): void {
  ballot.vote = ballot.vote === "granted" ? "failed" : "held";
  ballot.freeInMs = reply.freeInMs;
  ballot.rank = reply.rank;
  ballot.heldBy = reply.holder?.owner;
}
