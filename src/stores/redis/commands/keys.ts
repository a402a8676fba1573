import { crc16, hashSlot, hashTagOf } from "../../../clients/hash-slot.ts";
import { InvalidOptionError } from "../../../core/errors.ts";

/**
 * Number of fence counters per node. All lock keys with the same hash form a shard and share one
 * counter. The number and the hash are part of the wire format: clients that differ would use
 * different counters.
 */
export const shardCount = 1_024;
export const wireFormat = "1:crc16:1024";

export function shardOf(key: string): number {
  return crc16(key) % shardCount;
}

/** Key of the node record: the one hash that Holdfast keeps on each server for good. */
export const nodeRecordKey = "holdfast:node";

/** Returns the key of a lock's queue on a server that is not in a Cluster. */
export function queueKeyOf(key: string): string {
  return `holdfast:waiters:${key}`;
}

/** Returns the channel on which the waiters of one manager are notified, for all its locks. */
export function channelOf(_key: string, base: string): string {
  return `holdfast:wake:${base}`;
}

/**
 * Returns the key of a lock's fence counter, in the slot of the lock. `x` and `{x}` share one
 * counter. This is safe, because fences may skip numbers.
 */
export function counterKeyOf(key: string): string {
  return hashTagOf(key) === undefined ? taggedKeyOf(key, "fence") : `holdfast:${key}:fence`;
}

/** Returns the key of a lock's queue, in the slot of the lock. No two locks share a queue. */
export function clusterQueueKeyOf(key: string): string {
  return hashTagOf(key) === undefined ? taggedKeyOf(key, "waiters") : queueKeyOf(key);
}

/** Returns a key in the slot of a lock that has no hash tag. */
function taggedKeyOf(key: string, what: string): string {
  if (!key.includes("}")) return `holdfast:{${key}}:${what}`;
  // The lock key contains a brace, so it cannot be a hash tag. Another tag of the same slot is
  // used.
  return `holdfast:{${tagForSlot(hashSlot(key))}}:${key}:${what}`;
}

function tagForSlot(slot: number): string {
  for (let tag = 0; ; tag += 1) {
    const text = tag.toString(36);
    if (hashSlot(text) === slot) return text;
  }
}

/** Returns the channel for one lock. It is in the lock's slot, where scripts can use SPUBLISH. */
export function clusterChannelOf(key: string, base: string): string {
  return `${clusterQueueKeyOf(key)}:${base}`;
}

/**
 * Prefix of Holdfast's own keys (node record, counters of a Cluster, …). No lock key may have it.
 */
const ownKeys = "holdfast:";

/**
 * Returns the key of a resource: prefix and name. Throws if the result would be one of Holdfast's
 * own keys.
 */
export function lockKey(prefix: string, resource: string): string {
  const key = prefix + resource;
  if (!key.startsWith(ownKeys)) return key;
  throw new InvalidOptionError("resource", `a name that does not begin with "${ownKeys}"`, key);
}

/** Returns the keys of all resources. perf (sequential): mostly there is only one. */
export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  const [only] = resources;
  if (resources.length === 1 && only !== undefined) return [lockKey(prefix, only)];
  return resources.map((resource) => lockKey(prefix, resource));
}
