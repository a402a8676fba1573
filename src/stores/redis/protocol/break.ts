import { QuorumError, type Vote } from "../../../core/errors.ts";
import { isOwner } from "../../../core/owners.ts";
import type { BreakAnswer } from "../../../core/store.ts";
import { ScriptCall, type NodeCall } from "../commands/node-call.ts";
import { readRelease, releaseAfterResend } from "../commands/decode.ts";
import type { ReleaseReply } from "../commands/operation.ts";
import { breakForeign } from "../scripts/generated.ts";
import type { Quorum } from "./quorum.ts";
import { nodeTimeoutMs } from "./store-settings.ts";

/** TTL from which the node timeout is derived: breaking has no TTL of its own. */
const ordinaryTtlMs = 10_000;

interface Tally {
  readonly deleted: number;
  /** Number of nodes without the key on which an earlier run of the request may have deleted it. */
  readonly unproven: number;
  /** Number of nodes that certainly do not have the lock for this owner any more. */
  readonly without: number;
  readonly votes: readonly Vote[];
}

/**
 * Releases a lock in place of its owners. This is safe at any moment: every holder must expect that
 * its key is gone, and its next renewal fails. A node without a reply receives no second request:
 * the holder cannot renew with that node alone, and the key expires.
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
  // `inspect` has found these owners as holders. If a driver sent the request twice, the first run
  // may have deleted the key, so a missing key counts as broken.
  const isBroken = tallies.some(({ deleted, unproven }) => deleted > 0 || unproven > 0);
  return { kind: isBroken ? "broken" : "gone" };
}

function deleteFor(quorum: Quorum, key: string, owner: string): Promise<Tally> {
  const { nodes, rounds, options, clock } = quorum;
  const startedMs = clock.monotonicMs();
  return new Promise((resolve) => {
    const votes: Vote[] = [];
    let [deleted, unproven, without, left] = [0, 0, 0, nodes.length];
    const call = deletion(quorum, key, owner);
    const round = rounds.toAll(call, nodeTimeoutMs(options, ordinaryTtlMs), {
      wanted: () => true,
      onReply(index, reply, late) {
        if (late) return;
        const about = { node: nodes[index]?.name ?? "", ms: clock.monotonicMs() - startedMs };
        if (reply.kind === "reply") {
          if (reply.reply.whole) deleted += 1;
          else if (reply.reply.repeated) unproven += 1;
          without += 1;
          votes.push({ ...about, vote: "granted" });
        } else {
          const vote = reply.kind === "unknown" ? "unknown" : "failed";
          votes.push({ ...about, vote, cause: reply.error });
        }
        left -= 1;
        if (left > 0) return;
        round.end();
        resolve({ deleted, unproven, without, votes });
      },
    });
  });
}

const foreignForm = {
  script: breakForeign,
  read: readRelease,
  afterResend: releaseAfterResend,
};

/**
 * Returns the call that deletes the key. The value of a foreign client contains no owner to
 * compare, so such a key is deleted only if its whole value is unchanged.
 */
function deletion({ calls }: Quorum, key: string, owner: string): NodeCall<ReleaseReply> {
  if (isOwner(owner)) return calls.release([key], owner);
  return new ScriptCall(foreignForm, [key], [owner]);
}
