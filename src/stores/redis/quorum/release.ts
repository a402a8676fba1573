import type { ReleaseOutcome } from "../../../core/store.ts";
import type { PlaceLeft } from "../dialect.ts";
import type { NodeReply } from "../node-reply.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { ReleaseReply } from "../replies.ts";
import type { Debt } from "./owed-releases.ts";
import type { Quorum } from "./quorum.ts";
import { Round } from "./round.ts";

export interface ReleaseRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  readonly place: PlaceLeft;
  /** Nodes that certainly have nothing of the owner's: nothing is owed to them. */
  readonly without?: ReadonlySet<number>;
  /** Nodes that were not asked because they do not answer, a bit for each: left alone, too. */
  readonly spared?: number;
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
export async function release(
  quorum: Quorum,
  { keys, owner, ttlMs }: Omit<ReleaseRequest, "place">,
  place: PlaceLeft = "",
  spared = 0,
): Promise<ReleaseOutcome> {
  const request = { keys, owner, ttlMs, place, spared };
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
  const call = quorum.dialect.release(request.keys, request.owner, request.place);
  const debt = quorum.owed.owe(node, call, quorum.clock.monotonicMs(), request.ttlMs);
  const settle = (_: number, reply: NodeReply<ReleaseReply>): void => {
    if (isConfirmed(reply)) quorum.owed.settle(debt);
  };
  node.run(call, { isWanted: () => true, settle }, index);
}

function releaseRound(
  quorum: Quorum,
  request: ReleaseRequest,
  isCertain: (tally: Tally) => boolean,
): Promise<Tally> {
  const { nodes, scheduler, owed, options, size: enough } = quorum;
  const call = quorum.dialect.release(request.keys, request.owner, request.place);
  const nowMs = scheduler.clock.monotonicMs();
  const debts = new Map<number, Debt>();
  const owe = (index: number): void => {
    const node = nodes[index];
    if (node === undefined || debts.has(index)) return;
    debts.set(index, owed.owe(node, call, nowMs, request.ttlMs));
  };
  const among = askedIn(nodes.length, request);
  const tally = { deleted: 0, missing: 0 };
  if (among?.length === 0) return Promise.resolve(tally);
  return new Promise((resolve) => {
    let left = among?.length ?? nodes.length;
    const round = new Round({
      nodes,
      ...(among === undefined ? { enough } : { among }),
      call,
      scheduler,
      nowMs,
      timeoutMs: nodeTimeoutMs(options, request.ttlMs),
      wanted: () => true,
      onReply(index, reply, late) {
        const debt = debts.get(index);
        if (!isConfirmed(reply)) owe(index);
        else if (debt !== undefined) owed.settle(debt);
        if (late) return;
        left -= 1;
        if (reply.kind === "reply") tally[reply.reply.whole ? "deleted" : "missing"] += 1;
        if (left > 0 && !isCertain(tally)) return;
        // Those not waited for are owed it until they are heard from.
        for (const straggler of round.pending) owe(straggler);
        round.end();
        resolve(tally);
      },
    });
  });
}

function isConfirmed(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "reply" || reply.kind === "error";
}

/** Undefined where all of them are. */
function askedIn(count: number, { without, spared = 0 }: ReleaseRequest): number[] | undefined {
  if (spared === 0 && (without === undefined || without.size === 0)) return undefined;
  return Array.from({ length: count }, (_, index) => index).filter((index) => {
    return (spared & (1 << index)) === 0 && without?.has(index) !== true;
  });
}
