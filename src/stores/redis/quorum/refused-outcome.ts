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
    return { kind: "held", holder, retryInMs: retryIn(ballots, size - granted), cleanup };
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
 * When enough nodes may be free, if nobody tells us before. Rivals who each got a part of the votes
 * have no better time to come again than a random one, soon.
 */
function retryIn(ballots: readonly Ballot[], needed: number): number | undefined {
  if (ballots.some(({ vote }) => vote === "granted")) return undefined;
  const frees = ballots.flatMap(({ vote, freeInMs }) => {
    return vote === "held" ? [freeInMs ?? Infinity] : [];
  });
  return frees.sort((a, b) => a - b)[needed - 1];
}
