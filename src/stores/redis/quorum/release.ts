import type { ReleaseOutcome } from "../../../core/store.ts";
import { releaseCall } from "../dialect.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { Quorum } from "./quorum.ts";
import { Round } from "./round.ts";

export interface ReleaseRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  /** Nodes that were certainly never asked: nothing is owed to them. */
  readonly neverAsked?: ReadonlySet<number>;
}

interface Tally {
  /** Nodes that had all the owner's keys, and deleted them. */
  readonly deleted: number;
  /** Nodes that had not. */
  readonly missing: number;
}

/**
 * Deletes the owner's keys on every node, also those that failed or never answered. Resolves as
 * soon as the outcome is certain, at the latest after the node timeout; never rejects.
 */
export async function release(quorum: Quorum, request: ReleaseRequest): Promise<ReleaseOutcome> {
  const { size, nodes } = quorum;
  const isReleased = ({ deleted }: Tally): boolean => deleted >= size;
  const isTaken = ({ missing }: Tally): boolean => missing > nodes.length - size;
  const tally = await releaseRound(quorum, request, (so) => isReleased(so) || isTaken(so));
  if (isReleased(tally)) return { released: true };
  return { released: false, reason: isTaken(tally) ? "taken" : "unreachable" };
}

/** The clean-up after a failed attempt: done when every node has answered or run out of time. */
export async function releaseAll(quorum: Quorum, request: ReleaseRequest): Promise<void> {
  await releaseRound(quorum, request, () => false);
}

/** One node alone, without waiting: for a grant that came after its attempt had failed. */
export function releaseOn(quorum: Quorum, index: number, request: ReleaseRequest): void {
  const node = quorum.nodes[index];
  if (node === undefined) return;
  const call = releaseCall(request.keys, request.owner);
  const untilMs = quorum.clock.monotonicMs() + request.ttlMs;
  node.run(
    call,
    () => true,
    (reply) => {
      if (reply.kind === "unsent" || reply.kind === "unknown") quorum.owed.owe(node, call, untilMs);
    },
  );
}

function releaseRound(
  quorum: Quorum,
  request: ReleaseRequest,
  isCertain: (tally: Tally) => boolean,
): Promise<Tally> {
  const { nodes, scheduler, owed, options } = quorum;
  const call = releaseCall(request.keys, request.owner);
  const untilMs = scheduler.clock.monotonicMs() + request.ttlMs;
  return new Promise((resolve) => {
    const tally = { deleted: 0, missing: 0 };
    let left = nodes.length;
    const round = new Round({
      nodes,
      call,
      scheduler,
      timeoutMs: nodeTimeoutMs(options, request.ttlMs),
      wanted: () => true,
      onReply(index, reply, late) {
        const node = nodes[index];
        // One that timed out is still under way and may yet arrive: it is owed only once lost.
        const lostOnTheWay =
          reply.kind === "unsent" || (reply.kind === "unknown" && !reply.timedOut);
        if (lostOnTheWay && node !== undefined && request.neverAsked?.has(index) !== true) {
          owed.owe(node, call, untilMs);
        }
        if (late) return;
        left -= 1;
        if (reply.kind === "reply") tally[reply.reply.whole ? "deleted" : "missing"] += 1;
        if (left > 0 && !isCertain(tally)) return;
        round.end();
        resolve(tally);
      },
    });
  });
}
