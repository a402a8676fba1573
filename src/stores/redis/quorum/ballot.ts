import type { Vote, VoteKind } from "../../../core/errors.ts";
import type { NodeFailure, NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";
import type { AcquireReply } from "../replies.ts";
import type { TimedOut } from "./round.ts";

/** One node's part in an attempt. */
export class Ballot {
  vote: VoteKind | "pending" = "pending";
  cause: unknown = undefined;
  ms = 0;
  /** Fence of its grant; 0 without one. */
  fence = 0;
  /** Has the final fence on record: its vote counts towards the quorum. */
  confirmed = false;
  /** Cannot confirm the final fence any more. */
  out = false;
  /** How often it was asked. */
  asked = 1;
  /** Something of ours may be there, or on its way there. */
  maybeApplied = true;
  /** Its time to answer was up, and no answer has come since. */
  silent = false;
  runId: string | undefined = undefined;
  /** When it may be free there, where another has it. */
  freeInMs: number | undefined = undefined;
  /** Who has it there. */
  heldBy: string | undefined = undefined;
  /** How many waiters stand in front of ours there; undefined without a place. */
  rank: number | undefined = undefined;
  /** The node's clock epoch when it gave its word. */
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
 * Too few can still grant, and it is clear why: a quorum said yes or no, or too many failed. An
 * answer that would tell contention from a fault is worth waiting for.
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

/** Those who granted the final fence itself have it on record already. */
export function confirmGrantsOf(ballots: readonly Ballot[], fence: number): void {
  for (const ballot of ballots) {
    ballot.confirmed = ballot.vote === "granted" && ballot.fence === fence;
  }
}

/** Whom to raise to the final fence. The rest, but for those that have it, are out. */
export function raisable(ballots: readonly Ballot[]): number[] {
  return ballots.flatMap((ballot, index) => {
    // Also those that have not answered: their grant may be on its way.
    const mayHaveGranted = ["granted", "pending", "unknown"].includes(ballot.vote);
    if (mayHaveGranted && !ballot.confirmed) return [index];
    ballot.out = !ballot.confirmed;
    return [];
  });
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

/** Where a failed attempt may have left something of ours. */
interface LeftBehind {
  /**
   * The nodes where nothing of ours can be: never asked, or asked once and answered that others
   * have it. (A lost release is no danger to safety, so leaving out needless ones is none.)
   */
  readonly without: ReadonlySet<number>;
  /** The nodes that have not answered in time, a bit for each. */
  readonly silent: number;
}

export function leftBehind(ballots: readonly Ballot[]): LeftBehind {
  const without = new Set<number>();
  let silent = 0;
  for (const [index, ballot] of ballots.entries()) {
    if (!ballot.maybeApplied || (ballot.vote === "held" && ballot.asked === 1)) without.add(index);
    if (ballot.silent) silent |= 1 << index;
  }
  return { without, silent };
}

/** Writes down why a node gave no answer to the acquire. */
export function noteFailure(ballot: Ballot, failure: NodeFailure): void {
  const neverSent = failure.kind === "unsent" && ballot.asked === 1;
  ballot.maybeApplied = !neverSent;
  ballot.vote = neverSent || failure.kind === "error" ? "failed" : "unknown";
  ballot.cause = failure.error;
}

/** Writes down whether a node has the final fence on record. */
export function noteRaised(ballot: Ballot, isDone: boolean, clockEpoch = 0): void {
  ballot.confirmed = isDone;
  ballot.out = !isDone;
  ballot.clockEpoch = clockEpoch;
  ballot.silent = false;
}

/** The same for the raise: it granted, and then it failed, which is no doing of other holders. */
export function noteRaiseFailure(ballot: Ballot, failure: NodeFailure): void {
  ballot.out = true;
  ballot.vote = "unknown";
  ballot.cause = failure.error;
}

/** Marks all nodes whose time was up together: the first of them may decide the outcome. */
export function noteSilent(ballots: readonly Ballot[], timedOut: readonly TimedOut[]): void {
  for (const { index, reply } of timedOut) {
    const ballot = ballots[index];
    if (ballot === undefined) continue;
    ballot.silent = true;
    ballot.cause ??= reply.error;
  }
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

/** Writes a refusal down: another has it, or comes first. */
export function noteHeld(ballot: Ballot, reply: Extract<AcquireReply, { kind: "held" }>): void {
  ballot.vote = ballot.vote === "granted" ? "failed" : "held";
  ballot.freeInMs = reply.freeInMs;
  ballot.rank = reply.rank;
  ballot.heldBy = reply.holder?.owner;
}
