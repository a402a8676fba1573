import type { RedisConnection } from "./contract.ts";

/** A method of a client. Only its presence matters here. */
type Method = (...given: never[]) => unknown;

/** Client of one server, or of a master that Sentinel names, of ioredis 5 or 6 or of iovalkey. */
export interface IoredisLike {
  readonly status: string;
  readonly call: Method;
  readonly connect: Method;
  readonly duplicate: Method;
}

/** `Cluster` of ioredis 5 or 6, or of iovalkey. */
export interface IoredisClusterLike {
  readonly isCluster: boolean;
  readonly status: string;
  readonly connect: Method;
  readonly createBuiltinCommand: Method;
  readonly nodes: Method;
}

/** Client from `createClient()` of node-redis 5 or 6. Not a pool: it shows no connection state. */
export interface NodeRedisLike {
  readonly isReady: boolean;
  readonly sendCommand: Method;
  readonly withCommandOptions: Method;
  readonly duplicate: Method;
}

/** Client from `createSentinel()` of node-redis 5 or 6. */
export interface NodeRedisSentinelLike {
  readonly isReady: boolean;
  readonly sendCommand: Method;
  readonly withCommandOptions: Method;
  readonly getMasterNode: Method;
}

/** Client from `createCluster()` of node-redis 5 or 6. */
export interface NodeRedisClusterLike {
  readonly isOpen: boolean;
  readonly slots: readonly unknown[];
  readonly sendCommand: Method;
  readonly nodeClient: Method;
}

/** `GlideClient` or `GlideClusterClient` of Valkey GLIDE 2. */
export interface GlideLike {
  readonly customCommand: Method;
  readonly close: Method;
  readonly getPubSubMessage: Method;
}

/**
 * Client of a supported library, or your own connection. The types list only the members by which
 * Holdfast recognises a client. So a client of another copy of a library works as well.
 */
export type RedisClient =
  | IoredisLike
  | IoredisClusterLike
  | NodeRedisLike
  | NodeRedisSentinelLike
  | NodeRedisClusterLike
  | GlideLike
  | RedisConnection;
