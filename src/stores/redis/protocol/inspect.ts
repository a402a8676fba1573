import type { Holder } from "../../../core/errors.ts";
import type { Inspection, NodeInspection } from "../../../core/store.ts";
import type { Quorum } from "./quorum.ts";
import { nodeTimeoutMs } from "./store-settings.ts";

/** TTL from which the node timeout is derived: an inspection has no TTL of its own. */
const ordinaryTtlMs = 10_000;

/** Reads one lock on all nodes and sums up the replies. Waits for every node, up to its timeout. */
export function inspect(quorum: Quorum, resource: string, key: string): Promise<Inspection> {
  const { nodes, rounds, options, proposals } = quorum;
  return new Promise((resolve) => {
    const seen: NodeInspection[] = [];
    const waiters: number[] = [];
    let left = nodes.length;
    const call = quorum.calls.inspect(key);
    const round = rounds.toAll(call, nodeTimeoutMs(options, ordinaryTtlMs), {
      wanted: () => left > 0,
      onReply(index, reply, late) {
        if (reply.kind === "reply") proposals.see(Number(reply.reply.holder?.fence ?? 0));
        if (late) return;
        const node = nodes[index]?.name ?? "";
        if (reply.kind === "reply") {
          const { holder } = reply.reply;
          waiters.push(reply.reply.waiters);
          seen[index] =
            holder === undefined ? { node, vote: "free" } : { node, vote: "held", holder };
        } else {
          const vote = reply.kind === "unknown" ? "unknown" : "failed";
          seen[index] = { node, vote, cause: reply.error };
        }
        left -= 1;
        if (left > 0) return;
        round.end();
        // The maximum of all nodes is used: a node may lack the queue entry of a waiter.
        resolve({ ...summary(resource, seen, quorum.size), waiters: Math.max(0, ...waiters) });
      },
    });
  });
}

function summary(resource: string, nodes: readonly NodeInspection[], size: number): Inspection {
  const byOwner = new Map<string, NodeInspection[]>();
  for (const node of nodes) {
    const owner = node.holder?.owner;
    if (owner === undefined) continue;
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), node]);
  }
  const holding = [...byOwner.values()].find((group) => group.length >= size);
  const free = nodes.filter(({ vote }) => vote === "free").length;
  const answered = nodes.filter(({ vote }) => vote === "free" || vote === "held").length;
  const without = { resource, label: undefined, fence: undefined, remainingMs: undefined, nodes };
  if (holding !== undefined) {
    const holders = holding.flatMap(({ holder }) => (holder === undefined ? [] : [holder]));
    const agreed = agreedFence(holders, size);
    const endless = holders.filter(({ neverExpires }) => neverExpires === true);
    const remaining = holders
      .filter(({ fence }) => fence === agreed)
      .flatMap(({ remainingMs }) => remainingMs ?? []);
    return {
      ...without,
      state: "held",
      ...(holders[0]?.foreign === true ? { foreign: true as const } : {}),
      ...(endless.length >= size ? { neverExpires: true as const } : {}),
      label: holders[0]?.label,
      fence: agreed,
      // Time for which a quorum still has the lock. A node that did not receive the last extend may
      // have less time left.
      remainingMs: remaining.sort((a, b) => b - a)[size - 1] ?? remaining.at(-1),
    };
  }
  if (free >= size) return { ...without, state: "free" };
  return { ...without, state: answered >= size ? "split" : "unknown" };
}

/**
 * Returns the fence that a quorum stores. A node that did not receive the last update of the stored
 * fence (raise) has a smaller fence. A node that granted late has a greater one. Neither of these
 * two is the fence of the lease.
 */
function agreedFence(holders: readonly Holder[], size: number): bigint | undefined {
  const fences = holders.flatMap(({ fence }) => fence ?? []);
  const shared = fences.find((fence) => fences.filter((other) => other === fence).length >= size);
  if (shared !== undefined) return shared;
  // During a raise, no quorum may have the same fence yet. The greatest fence is then the final
  // one.
  return fences.reduce<bigint | undefined>((found, fence) => {
    return found === undefined || fence > found ? fence : found;
  }, undefined);
}
