import { QuorumError, type Holder } from "../../../core/errors.ts";
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
    return { kind: "held", holder, retryInMs, split: granted > 0, cleanup };
  }

  const permanent = ballots.filter(({ vote, cause }) => vote === "failed" && isPermanent(cause));
  const blank = countOf(ballots, "blank");
  const hint = wasLate ? lateHint : blank > nodes.length - size ? admissionHint : undefined;
  const error = new QuorumError("acquire", resources, votesOf(nodes, ballots), {
    quorum: size,
    cause: ballots.find(({ cause }) => cause !== undefined)?.cause,
    hint,
  });
  return { kind: "failed", error, retryable: permanent.length <= nodes.length - size, cleanup };
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
