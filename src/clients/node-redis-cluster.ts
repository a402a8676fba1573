import type { RedisConnection } from "./contract.ts";
import { hashSlot } from "./hash-slot.ts";
import { withKeyPrefix } from "./key-prefix.ts";
import { commandOptionsOf, type DisconnectEmitter } from "./node-redis-options.ts";
import {
  destroy,
  library,
  type NodeRedisSubscriber,
  type PubSubListener,
  refuse,
} from "./node-redis.ts";
import { type OpenSubscriber, Subscriptions } from "./subscriptions.ts";

/** What is used of `createCluster()` of node-redis 5 and 6. */
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
  duplicate(overrides: object): ShardedSubscriber;
}

interface ClusterNode {
  readonly client?: { readonly isReady: boolean } | undefined;
}

interface ShardedSubscriber extends Omit<NodeRedisSubscriber, "subscribe" | "unsubscribe"> {
  sSubscribe(channel: string, listener: PubSubListener): Promise<unknown>;
  sUnsubscribe(channel: string, listener: PubSubListener): Promise<unknown>;
}

/**
 * Serves a Cluster. A cluster that is ready may still have lost one node, and would keep a command
 * for that node until it is back, however long that takes: so the node is looked at, not the
 * cluster.
 */
export function nodeRedisClusterConnection(client: NodeRedisCluster): RedisConnection {
  const prefix = String(client._keyPrefix ?? "");
  const options = commandOptionsOf(client, "node-reconnecting");
  const subscriptions = new Subscriptions(subscriberOf(client));
  return {
    library,
    topology: "cluster",
    send(key, command) {
      const routed = prefix + key;
      if (!isConnected(client, routed)) return refuse(client.isOpen);
      const args = prefix === "" ? command : withKeyPrefix(prefix, key, command);
      return client.sendCommand(routed, false, args, options());
    },
    subscribe(channel, listener) {
      if (!client.isOpen) return refuse(false);
      return subscriptions.subscribe(channel, listener);
    },
    close: () => subscriptions.close(),
  };
}

function isConnected(client: NodeRedisCluster, key: string): boolean {
  const node = client.isOpen ? client.slots[hashSlot(key)]?.master : undefined;
  if (node === undefined) return false;
  if (node.client !== undefined) return node.client.isReady;
  // With `minimizeConnections` a node is dialled on first use: dial it, for the next attempt.
  client.nodeClient(node).catch(() => undefined);
  return false;
}

function subscriberOf(client: NodeRedisCluster): OpenSubscriber {
  return (deliver) => {
    // Without connections for commands, of which it will send none.
    const subscriber = client.duplicate({ commandOptions: {}, minimizeConnections: true });
    subscriber.on("error", () => undefined);
    const listener: PubSubListener = (message, channel) => deliver(channel, message);
    return {
      connected: subscriber.connect(),
      subscribe: (channel) => subscriber.sSubscribe(channel, listener),
      unsubscribe: (channel) => subscriber.sUnsubscribe(channel, listener),
      close: () => destroy(subscriber),
    };
  };
}
