import { QuorumError, type HoldfastError } from "../../../core/errors.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { RedisNode } from "../node.ts";
import { countOf, newBallot, votesOf, type Ballot } from "./ballot.ts";
import type { RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import { Round } from "./round.ts";

export type TouchOutcome =
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly error: HoldfastError };

/**
 * Asks every node to extend (`ttlMs` > 0) or to confirm (0) a grant, or to raise it to `fence`.
 * `gone` only where so many say no that another may hold it; nodes that fail or may not vote leave
 * it in doubt.
 */
export function touch(
  quorum: Quorum,
  grant: RedisGrant,
  ttlMs: number,
  action: "extend" | "prove",
  fence: number = grant.fenceNumber,
): Promise<TouchOutcome> {
  const { nodes, size, scheduler, options, clock } = quorum;
  const ballots = nodes.map(newBallot);
  const startedMs = clock.monotonicMs();
  const call = quorum.dialect.touch(grant.keys, grant.owner, ttlMs, fence);
  return new Promise((resolve) => {
    let decided = false;
    let confirmation = -1;
    const round = new Round({
      nodes,
      enough: size,
      call,
      scheduler,
      timeoutMs: nodeTimeoutMs(options, Math.max(ttlMs, grant.ttlMs)),
      // An extension is still of use to a node that was not waited for, and never makes a key.
      wanted: () => !decided || ttlMs > 0,
      onReply(index, reply) {
        const ballot = ballots[index];
        if (ballot === undefined) return;
        if (decided) {
          const isDone = reply.kind === "reply" && reply.reply.kind === "done";
          if (isDone) grant.addVote(index, confirmation);
          return;
        }
        ballot.ms = clock.monotonicMs() - startedMs;
        if (reply.kind !== "reply") {
          ballot.vote = reply.kind === "unknown" ? "unknown" : "failed";
          ballot.cause = reply.error;
        } else if (reply.reply.kind === "blank") {
          ballot.vote = "blank";
          ballot.cause = quorum.onBlank(index, reply.reply.report);
        } else if (reply.reply.kind === "refused") {
          ballot.vote = "failed";
          ballot.cause = reply.reply.error;
        } else {
          ballot.vote = reply.reply.kind === "done" ? "granted" : "held";
          ballot.clockEpoch = nodes[index]?.clockEpoch ?? 0;
        }
        takeBackStepped(nodes, ballots);
        const outcome = decide(ballots, nodes.length, size);
        if (outcome === undefined) return;
        decided = true;
        round.end();
        if (outcome === "done") confirmation = grant.confirm(indicesOf(ballots));
        if (outcome !== "failed") return resolve({ kind: outcome });
        resolve({ kind: "failed", error: quorumError(quorum, grant, ballots, action) });
      },
    });
  });
}

/** A clock that was set forward since may have ended the key at once, and the word with it. */
function takeBackStepped(nodes: readonly RedisNode[], ballots: readonly Ballot[]): void {
  for (const [index, ballot] of ballots.entries()) {
    if (ballot.vote !== "granted" || ballot.clockEpoch === nodes[index]?.clockEpoch) continue;
    ballot.vote = "unknown";
    ballot.cause = new Error("its clock was set forward after it had answered");
  }
}

function indicesOf(ballots: readonly Ballot[]): number[] {
  return ballots.flatMap(({ vote }, index) => (vote === "granted" ? [index] : []));
}

function decide(
  ballots: readonly Ballot[],
  nodeCount: number,
  size: number,
): "done" | "gone" | "failed" | undefined {
  const done = countOf(ballots, "granted");
  const gone = countOf(ballots, "held");
  const pending = countOf(ballots, "pending");
  if (done >= size) return "done";
  if (gone > nodeCount - size) return "gone";
  // Worth waiting while either answer is still possible: "gone" is news that must not be missed.
  const possible = done + pending >= size || gone + pending > nodeCount - size;
  return possible && pending > 0 ? undefined : "failed";
}

function quorumError(
  quorum: Quorum,
  grant: RedisGrant,
  ballots: readonly Ballot[],
  action: string,
): HoldfastError {
  const { nodes, size } = quorum;
  return new QuorumError(action, grant.resources, votesOf(nodes, ballots), {
    quorum: size,
    cause: ballots.find(({ cause }) => cause !== undefined)?.cause,
  });
}
