import { ForeignHolderError, QuorumError, type Holder, type Vote } from "../../../core/errors.ts";
import type { AttemptOutcome } from "../../../core/store.ts";
import { isPermanent } from "../commands/refusals.ts";
import { countOf, votesOf, type Ballot } from "./ballot.ts";
import type { Quorum } from "./quorum.ts";

interface Refusal {
  readonly resources: readonly string[];
  readonly ballots: readonly Ballot[];
  readonly holder: Holder | undefined;
  readonly cleanup: Promise<void>;
}

/** Tolerance: keys that one round set or extended expire on all nodes within this time. */
const agreeMs = 5;

const admissionHint =
  'A node votes only once it is admitted; for development there is admission: "off"';
const strictNodesHint =
  'The records of these nodes are those of admission "strict", which binds this client as well';
const lateHint = "A quorum granted, but when it was certain too little of the TTL was left";

/**
 * Returns the outcome of a failed attempt: `held` (contention) if a quorum of nodes replied that
 * the lock is granted or held, otherwise `failed` (a fault). A quorum that granted too late is a
 * fault.
 */
export function refusedOutcome(quorum: Quorum, refusal: Refusal): AttemptOutcome {
  const { resources, ballots, holder, cleanup } = refusal;
  const { nodes, size } = quorum;
  const setupError = quorum.duplicates.check(ballots);
  if (setupError !== undefined)
    return { kind: "failed", error: setupError, retryable: false, cleanup };
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
  const votesInMs = hint === admissionHint ? quorum.countdown.leftMs() : undefined;
  const retryable = permanent.length <= nodes.length - size;
  return { kind: "failed", error, retryable, votesInMs, cleanup };
}

/**
 * True if one owner holds the lock on a quorum. A node that granted has then lost the holder's key,
 * and the votes are not split between rivals.
 */
function isHeldByOne(ballots: readonly Ballot[], size: number): boolean {
  return ballots.some(({ heldBy }) => {
    return heldBy !== undefined && ballots.filter((each) => each.heldBy === heldBy).length >= size;
  });
}

/**
 * Returns the smallest rank of all nodes (number of waiters ahead): a node with fewer waiters in
 * its queue may grant earlier.
 */
function rankOf(ballots: readonly Ballot[]): number | undefined {
  let least: number | undefined;
  for (const { rank } of ballots) {
    if (rank !== undefined && (least === undefined || rank < least)) least = rank;
  }
  return least;
}

/** Returns the error of the first node whose key has another type, with `resources` added. */
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
 * Returns the time until enough nodes may be free, if no notification comes before. A node that
 * granted counts as free: our release frees it, and our queue entry stays.
 *
 * A node without a reply counts as free too, unless the nodes that replied agree: the holder's last
 * renewal may have reached only some of them.
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
