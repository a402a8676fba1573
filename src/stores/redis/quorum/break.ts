import { QuorumError, type Vote } from "../../../core/errors.ts";
import type { BreakAnswer } from "../../../core/store.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { Quorum } from "./quorum.ts";
import { Round } from "./round.ts";

/** Breaking has no TTL of its own: it waits as long as an ordinary lease's round would. */
const ordinaryTtlMs = 10_000;

interface Tally {
  readonly deleted: number;
  /** Nodes that certainly do not have it for this owner any more. */
  readonly without: number;
  readonly votes: readonly Vote[];
}

/**
 * Gives back in the owners' stead. A key that is gone is what every holder must expect, so this is
 * safe at any moment: at its next renewal the holder finds itself without a quorum. Nothing is owed
 * to nodes that did not answer: the holder cannot renew there alone, and what is left expires.
 */
export async function breakOwners(
  quorum: Quorum,
  resource: string,
  key: string,
  owners: readonly string[],
): Promise<BreakAnswer> {
  const tallies = await Promise.all(owners.map((owner) => deleteFor(quorum, key, owner)));
  const needed = quorum.nodes.length - quorum.size + 1;
  const doubtful = tallies.find(({ without }) => without < needed);
  if (doubtful !== undefined) {
    const { votes } = doubtful;
    const cause = votes.find((vote) => vote.cause !== undefined)?.cause;
    const error = new QuorumError("break", [resource], votes, { quorum: needed, cause });
    return { kind: "failed", error };
  }
  return { kind: tallies.some(({ deleted }) => deleted > 0) ? "broken" : "gone" };
}

function deleteFor(quorum: Quorum, key: string, owner: string): Promise<Tally> {
  const { nodes, scheduler, options, clock } = quorum;
  const startedMs = clock.monotonicMs();
  return new Promise((resolve) => {
    const votes: Vote[] = [];
    let [deleted, without, left] = [0, 0, nodes.length];
    const round = new Round({
      nodes,
      call: quorum.dialect.release([key], owner),
      scheduler,
      timeoutMs: nodeTimeoutMs(options, ordinaryTtlMs),
      wanted: () => true,
      onReply(index, reply, late) {
        if (late) return;
        const about = { node: nodes[index]?.name ?? "", ms: clock.monotonicMs() - startedMs };
        if (reply.kind === "reply") {
          if (reply.reply.whole) deleted += 1;
          without += 1;
          votes.push({ ...about, vote: "granted" });
        } else {
          const vote = reply.kind === "unknown" ? "unknown" : "failed";
          votes.push({ ...about, vote, cause: reply.error });
        }
        left -= 1;
        if (left > 0) return;
        round.end();
        resolve({ deleted, without, votes });
      },
    });
  });
}
