import type { Vote, VoteKind } from "../../../core/errors.ts";
import type { NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";
import type { AcquireReply } from "../replies.ts";

/** One node's part in an attempt. */
export interface Ballot {
  vote: VoteKind | "pending";
  cause: unknown;
  ms: number;
  /** Fence of its grant; 0 without one. */
  fence: number;
  /** Has the final fence on record: its vote counts towards the quorum. */
  confirmed: boolean;
  /** Cannot confirm the final fence any more. */
  out: boolean;
  /** How often it was asked. */
  asked: number;
  /** Something of ours may be there, or on its way there. */
  maybeApplied: boolean;
  runId: string | undefined;
  /** When it may be free there, where another has it. */
  freeInMs: number | undefined;
  /** The node's clock epoch when it gave its word. */
  clockEpoch: number;
}

export function newBallot(): Ballot {
  return {
    vote: "pending",
    cause: undefined,
    ms: 0,
    fence: 0,
    confirmed: false,
    out: false,
    asked: 1,
    maybeApplied: true,
    runId: undefined,
    freeInMs: undefined,
    clockEpoch: 0,
  };
}

export function quorumOf(nodeCount: number): number {
  return Math.floor(nodeCount / 2) + 1;
}

const notWaitedFor = new Error("not waited for: the outcome was certain without it");

/** For errors and events: a node that was not waited for is unknown. */
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

export function confirmedOf(ballots: readonly Ballot[]): number {
  let count = 0;
  for (const ballot of ballots) if (ballot.confirmed) count += 1;
  return count;
}

/** A bit for each node whose vote counts. */
export function confirmedBits(ballots: readonly Ballot[]): number {
  let bits = 0;
  for (let index = 0; index < ballots.length; index += 1) {
    if (ballots[index]?.confirmed === true) bits |= 1 << index;
  }
  return bits;
}

/**
 * A node whose clock stepped forward since it gave its word may have dropped the key: its word is
 * taken back. Returns how many there were.
 */
export function dropStepped(nodes: readonly RedisNode[], ballots: readonly Ballot[]): number {
  let dropped = 0;
  let index = -1;
  for (const ballot of ballots) {
    index += 1;
    if (!ballot.confirmed || ballot.clockEpoch === nodes[index]?.clockEpoch) continue;
    ballot.confirmed = false;
    ballot.out = true;
    dropped += 1;
  }
  return dropped;
}

/** A node that was not waited for has the very same fence. */
export function isGrantOf(reply: NodeReply<AcquireReply>, fence: number): boolean {
  return reply.kind === "reply" && reply.reply.kind === "granted" && reply.reply.fence === fence;
}

/**
 * The nodes where nothing of ours can be: never asked, or asked once and answered that others have
 * it. (A lost release is no danger to anybody's safety, so leaving out needless ones is none.)
 */
export function withoutOurs(ballots: readonly Ballot[]): ReadonlySet<number> {
  const without = new Set<number>();
  for (const [index, { vote, asked, maybeApplied }] of ballots.entries()) {
    if (!maybeApplied || (vote === "held" && asked === 1)) without.add(index);
  }
  return without;
}

/** Writes a grant down; false where it does not go with what the node said before. */
export function noteGrant(ballot: Ballot, fence: number, runId: string | undefined): boolean {
  if (ballot.vote === "held" || (ballot.fence !== 0 && ballot.fence !== fence)) {
    // Two answers that do not go together: the key came and went in between.
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
