import type { RedisConnection } from "../../clients/contract.ts";
import type { RedisClient } from "../../clients/redis-client.ts";
import { InvalidOptionError } from "../../core/errors.ts";
import type { Store } from "../../core/store.ts";
import { connectionAt } from "./node/given-client.ts";
import { checkLines, resolveStoreOptions, type RedisStoreOptions } from "./options.ts";
import { RedisStore } from "./store.ts";
import { driftMs } from "./protocol/store-settings.ts";

/**
 * Limit: a set of nodes is stored in 31 bits. More nodes would add latency, but no useful safety.
 */
const nodesMax = 31;

/**
 * Locks on N independent Redis masters, by a majority of them. Takes clients of ioredis, iovalkey,
 * node-redis or GLIDE, mixed if you like. Throws InvalidOptionError for anything else.
 */
export function redlock(clients: readonly RedisClient[], options: RedisStoreOptions = {}): Store {
  if (!Array.isArray(clients) || clients.length === 0 || clients.length > nodesMax) {
    throw new InvalidOptionError("nodes", `a list of 1 to ${nodesMax} Redis clients`, clients);
  }
  const connections = clients.map((client, index) => connectionAt(`nodes[${index}]`, client));
  if (new Set(clients).size < clients.length) {
    throw new InvalidOptionError("nodes", "different clients", "the same client twice");
  }
  return redisStore(`redlock of ${clients.length}`, connections, options);
}

/** Locks on one Redis or Valkey server, a Sentinel-managed master, or a Cluster. */
export function redis(client: RedisClient, options: RedisStoreOptions = {}): Store {
  return redisStore("redis", [connectionAt("client", client)], options);
}

function redisStore(
  name: string,
  connections: readonly RedisConnection[],
  options: RedisStoreOptions,
): Store {
  const cluster = connections.some(({ topology }) => topology === "cluster");
  if (cluster && options.admission === "strict") {
    throw new InvalidOptionError("admission", '"off" with a Cluster client', options.admission);
  }
  const resolved = resolveStoreOptions(
    cluster ? { ...options, admission: "off" } : options,
    connections.length,
  );
  checkLines(resolved.replicas, connections);
  return {
    name,
    capabilities: { fencing: resolved.fencing, multiResource: true },
    maxTtlMs: resolved.ttlMaxMs,
    validityMs: (ttlMs) => ttlMs - driftMs(resolved, ttlMs),
    open: (context) => new RedisStore(connections, resolved, context),
  };
}
