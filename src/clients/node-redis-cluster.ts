import type { RedisConnection } from "./contract.ts";
import { firstConnectOf } from "./first-connect.ts";
import { hashSlot } from "./hash-slot.ts";
import { withKeyPrefix } from "./key-prefix.ts";
import { commandOptionsOf, type DisconnectEmitter } from "./node-redis-options.ts";
import { openNodeRedisSubscriber, type NodeRedisDuplicator } from "./node-redis-subscriber.ts";
import { library, notConnected, refuse } from "./node-redis.ts";
import { neverSubscribed, NodeSubscriptions } from "./subscriptions.ts";

/** The part of `createCluster()` of node-redis 5 and 6 that is used here. */
export interface NodeRedisCluster extends DisconnectEmitter {
  readonly isOpen: boolean;
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  readonly _keyPrefix?: string | Buffer | undefined;
  nodeClient(node: ClusterNode): Promise<unknown>;
  sendCommand(
    firstKey: string,
    isReadonly: boolean,
    args: readonly string[],
    options: object,
  ): Promise<unknown>;
}

interface ClusterNode {
  readonly address?: string;
  readonly client?: NodeClient | undefined;
}

interface NodeClient extends NodeRedisDuplicator {
  readonly isReady: boolean;
}

/**
 * Returns the connection for a Cluster client. Checks the state of the node that serves the key,
 * because a Cluster client that is "ready" may have lost one node. It would buffer the commands for
 * that node without limit.
 */
export function nodeRedisClusterConnection(client: NodeRedisCluster): RedisConnection {
  const prefix = String(client._keyPrefix ?? "");
  const options = commandOptionsOf(client, "node-reconnecting");
  const subscriptions = new NodeSubscriptions<NodeClient>((node, events) =>
    openNodeRedisSubscriber(node, "sharded", events),
  );
  return {
    library,
    topology: "cluster",
    send(key, command) {
      const routed = prefix + key;
      if (!isConnected(client, routed)) return refuse(client, client.isOpen);
      const args = prefix === "" ? command : withKeyPrefix(prefix, key, command);
      return client.sendCommand(routed, false, args, options());
    },
    firstConnect: firstConnectOf(client, {
      library,
      readyEvent: "connect",
      failedEvents: ["disconnect"],
      state() {
        if (!client.isOpen) return "idle";
        // With `minimizeConnections`, the library connects to a node only when the node is first
        // used, so a node without a client counts as usable.
        const isUsable = client.slots.some((slot) => slot && slot.master.client?.isReady !== false);
        return isUsable ? "over" : "connecting";
      },
    }),
    subscribe(channel, listener) {
      const node = isConnected(client, channel)
        ? client.slots[hashSlot(channel)]?.master
        : undefined;
      if (node?.client === undefined) {
        return neverSubscribed(listener, notConnected(client, client.isOpen));
      }
      return subscriptions.subscribe(node.address ?? "", node.client, channel, listener);
    },
  };
}

function isConnected(client: NodeRedisCluster, key: string): boolean {
  const node = client.isOpen ? client.slots[hashSlot(key)]?.master : undefined;
  if (node === undefined) return false;
  if (node.client !== undefined) return node.client.isReady;
  // With `minimizeConnections` the library connects a node at its first use. Starts the connect
  // now, for the next attempt.
  client.nodeClient(node).catch(() => undefined);
  return false;
}
