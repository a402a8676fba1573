export { redlockGroups } from "./redlock-groups.ts";
export { redis, redlock } from "./redlock.ts";
export type { GroupsOptions } from "./groups-options.ts";
export type { DriftOptions, RedisStoreOptions, ReplicasOptions } from "./options.ts";
export type {
  GlideLike,
  IoredisClusterLike,
  IoredisLike,
  NodeRedisClusterLike,
  NodeRedisLike,
  NodeRedisSentinelLike,
  RedisClient,
} from "../../clients/redis-client.ts";
export type { RedisConnection, SubscriptionListener } from "../../clients/contract.ts";
export { NotConnectedError } from "../../clients/contract.ts";
