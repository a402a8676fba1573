import { ForeignHolderError, QuorumError, type Holder, type Vote } from "../../../core/errors.ts";
import type { AttemptOutcome } from "../../../core/store.ts";
import { isPermanent } from "../replies.ts";
import { countOf, votesOf, type Ballot } from "./ballot.ts";
import type { Quorum } from "./quorum.ts";

interface Refusal {
  readonly resources: readonly string[];
  readonly ballots: readonly Ballot[];
  readonly holder: Holder | undefined;
  readonly cleanup: Promise<void>;
}

/** Keys of one grant or renewal end together, but for its way to each of the nodes. */
const agreeMs = 5;

const admissionHint =
  'A node votes only once it is admitted; for development there is admission: "off"';
const strictNodesHint =
  'The records of these nodes are those of admission "strict", which binds this client as well';
const lateHint = "A quorum granted, but when it was certain too little of the TTL was left";

/**
 * Contention or fault? Where a quorum of nodes is alive and said yes or no, others were in the way.
 * Where it is not, something is broken. The two are never the same answer.
 */
export function refusedOutcome(quorum: Quorum, refusal: Refusal): AttemptOutcome {
  const { resources, ballots, holder, cleanup } = refusal;
  const { nodes, size } = quorum;
  const misfit = quorum.misfit(ballots);
  if (misfit !== undefined) return { kind: "failed", error: misfit, retryable: false, cleanup };
  const granted = countOf(ballots, "granted");
  const held = countOf(ballots, "held");
  const wasLate = granted >= size && ballots.filter((ballot) => ballot.confirmed).length >= size;
  if (granted + held >= size && !wasLate) {
    const retryInMs = retryIn(ballots, size - granted);
    const votes = (): readonly Vote[] => votesOf(nodes, ballots);
    const split = granted > 0 && !isHeldByOne(ballots, size);
    return { kind: "held", holder, retryInMs, rank: rankOf(ballots), split, votes, cleanup };
  }

  const permanent = ballots.filter(({ vote, cause }) => vote === "failed" && isPermanent(cause));
  if (permanent.length > nodes.length - size) {
    const error = foreignIn(permanent, resources);
    if (error !== undefined) return { kind: "failed", error, retryable: false, cleanup };
  }
  const blank = countOf(ballots, "blank");
  const blankHint = quorum.options.admission === "off" ? strictNodesHint : admissionHint;
  const hint = wasLate ? lateHint : blank > nodes.length - size ? blankHint : undefined;
  const error = new QuorumError("acquire", resources, votesOf(nodes, ballots), {
    quorum: size,
    cause: ballots.find(({ cause }) => cause !== undefined)?.cause,
    hint,
  });
  return { kind: "failed", error, retryable: permanent.length <= nodes.length - size, cleanup };
}

/** True if one owner has a quorum: a node that granted has lost the lock, and no rivals met. */
function isHeldByOne(ballots: readonly Ballot[], size: number): boolean {
  return ballots.some(({ heldBy }) => {
    return heldBy !== undefined && ballots.filter((each) => each.heldBy === heldBy).length >= size;
  });
}

/** The smallest of all nodes: a node that knows fewer waiters may let us in before the others. */
function rankOf(ballots: readonly Ballot[]): number | undefined {
  let least: number | undefined;
  for (const { rank } of ballots) {
    if (rank !== undefined && (least === undefined || rank < least)) least = rank;
  }
  return least;
}

/** The error of a node whose key is of another type, about these resources. */
export function foreignIn(
  votes: readonly { readonly cause?: unknown }[],
  resources: readonly string[],
): ForeignHolderError | undefined {
  for (const { cause } of votes) {
    if (!(cause instanceof ForeignHolderError)) continue;
    return new ForeignHolderError(cause.type, cause.message, { resources });
  }
  return undefined;
}

/**
 * When enough nodes may be free, if nobody tells us before. What was granted this time counts as
 * free: it is given back, and our place in front stays. So do nodes that were not waited for,
 * unless those that answered agree: the last renewal of a holder may have reached some alone.
 */
function retryIn(ballots: readonly Ballot[], needed: number): number | undefined {
  const frees = ballots.flatMap(({ vote, freeInMs }) => {
    return vote === "held" ? [freeInMs ?? Infinity] : [];
  });
  frees.sort((a, b) => a - b);
  const certainMs = frees[needed - 1];
  const earliestMs = frees[needed - 1 - countOf(ballots, "pending")];
  if (certainMs === undefined || earliestMs === undefined) return certainMs;
  return certainMs - earliestMs <= agreeMs ? certainMs : earliestMs;
}
