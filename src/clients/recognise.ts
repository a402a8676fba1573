import type { RedisConnection } from "./contract.ts";
import { type IoredisCluster, ioredisClusterConnection } from "./ioredis-cluster.ts";
import { type IoredisClient, ioredisConnection } from "./ioredis.ts";
import { type NodeRedisCluster, nodeRedisClusterConnection } from "./node-redis-cluster.ts";
import {
  type NodeRedisClient,
  nodeRedisConnection,
  type NodeRedisSentinel,
  nodeRedisSentinelConnection,
} from "./node-redis.ts";
import { type GlideClient, glideConnection } from "./valkey-glide.ts";

/**
 * Returns the connection for a client of any supported library, or undefined for any other value.
 * Recognises a client by its methods, so a second copy of the library, a subclass or a proxy works.
 * Returns a RedisConnection unchanged.
 */
export function connectionOf(client: unknown): RedisConnection | undefined {
  if (typeof client !== "object" || client === null) return undefined;
  if (isConnection(client)) return client;
  if (isIoredisCluster(client)) return ioredisClusterConnection(client);
  if (isIoredis(client)) return ioredisConnection(client);
  if (isNodeRedisCluster(client)) return nodeRedisClusterConnection(client);
  if (isNodeRedisSentinel(client)) return nodeRedisSentinelConnection(client);
  if (isNodeRedis(client)) return nodeRedisConnection(client);
  if (isGlide(client)) {
    // Only the Cluster client can choose a route, and only a Cluster has sharded channels.
    return glideConnection(client, has(client, "pubsubShardChannels") ? "cluster" : "standalone");
  }
  return undefined;
}

function isConnection(client: object): client is RedisConnection {
  const { topology, library } = client as Partial<RedisConnection>;
  const known = topology === "standalone" || topology === "cluster";
  return known && typeof library === "string" && has(client, "send");
}

function isIoredis(client: object): client is IoredisClient {
  const { status } = client as Partial<IoredisClient>;
  return typeof status === "string" && has(client, "call", "connect", "duplicate");
}

function isIoredisCluster(client: object): client is IoredisCluster {
  const { isCluster, status } = client as Partial<IoredisCluster>;
  const known = isCluster === true && typeof status === "string";
  return known && has(client, "connect", "createBuiltinCommand", "nodes", "on");
}

function isNodeRedis(client: object): client is NodeRedisClient {
  // Excludes pools: a pool shows no connection state and buffers commands while disconnected.
  return isNodeRedisClient(client) && has(client, "duplicate");
}

function isNodeRedisSentinel(client: object): client is NodeRedisSentinel {
  return isNodeRedisClient(client) && has(client, "getSentinelNode", "getMasterNode");
}

/**
 * True for clients from version 5 on, the first with options per command. `withCommandOptions`
 * exists since that version.
 */
function isNodeRedisClient(client: object): boolean {
  const { isReady } = client as Partial<NodeRedisClient>;
  return typeof isReady === "boolean" && has(client, "sendCommand", "withCommandOptions");
}

function isNodeRedisCluster(client: object): client is NodeRedisCluster {
  const { isOpen, slots } = client as Partial<NodeRedisCluster>;
  const known = typeof isOpen === "boolean" && Array.isArray(slots);
  return known && has(client, "sendCommand", "duplicate", "nodeClient", "withCommandOptions");
}

function isGlide(client: object): client is GlideClient {
  return has(client, "customCommand", "close", "getPubSubMessage");
}

function has(client: object, ...methods: readonly string[]): boolean {
  return methods.every((name) => typeof Reflect.get(client, name) === "function");
}
