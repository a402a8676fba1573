import type { RedisClient } from "../../clients/redis-client.ts";
import type { OpenStore, Store, StoreContext } from "../../core/store.ts";
import { nodeNames } from "./node/node-names.ts";
import { RedisNode } from "./node/node.ts";
import { RedisStore } from "./store.ts";
import { resolveGroups, type GroupsOptions, type ResolvedGroups } from "./groups-options.ts";
import { GroupsStore } from "./groups/groups-store.ts";
import { LayoutGate } from "./groups/layout-gate.ts";
import { Layout } from "./groups/layout.ts";
import { Rendezvous } from "./groups/rendezvous.ts";
import { driftMs } from "./protocol/store-settings.ts";

/**
 * Locks on several independent quorums. Each resource belongs to one group, so capacity grows with
 * the number of groups, and a failed group affects only its own resources. Resources of several
 * groups are locked group after group in a fixed order, under one fence.
 *
 * Give the same groups to every client: nodes refuse a client with other groups (StoreError).
 */
export function redlockGroups(
  clients: readonly (readonly RedisClient[])[],
  options?: GroupsOptions,
): Store {
  const resolved = resolveGroups(clients, options ?? {});
  const { options: all } = resolved;
  return {
    name: `redlock of ${resolved.groups.length} groups of ${all.nodeCount}`,
    capabilities: { fencing: true, multiResource: true },
    maxTtlMs: all.ttlMaxMs,
    validityMs: (ttlMs) => ttlMs - driftMs(all, ttlMs),
    open: (context) => openGroups(resolved, context),
  };
}

function openGroups({ version, groups, retired, options }: ResolvedGroups, context: StoreContext) {
  const ids = groups.map(({ id }) => id);
  const leaving = retired.map(({ id }) => id);
  const layout = new Layout({ version, ids, retired: leaving, options });
  const stores = groups.map(({ id, connections }) => {
    const own = { ...options, wireFormat: layout.open(id) };
    return new RedisStore(connections, own, context, `group-${id}/`);
  });
  const { scheduler, events } = context;
  const retiredPlaces = retired.map(({ id, connections }) => {
    const names = nodeNames(connections, `group-${id}/`);
    const nodes = connections.map((connection, index) => {
      const name = names[index] ?? "";
      return new RedisNode(name, connection, {
        clock: scheduler.clock,
        events,
        lists: undefined,
        silentMsMax: Infinity,
        allowance: { factor: options.driftFactor, fixedMs: options.driftFixedMs },
      });
    });
    return { id, nodes };
  });
  const gate = new LayoutGate({
    layout,
    groups: stores.map((store, index) => ({ id: ids[index] ?? "", nodes: store.members })),
    retired: retiredPlaces,
    options,
    scheduler,
    events,
  });
  const opened: OpenStore = new GroupsStore({
    stores,
    rendezvous: new Rendezvous(ids),
    gate,
    prefix: options.prefix,
    clock: context.runtime.clock,
  });
  return opened;
}
