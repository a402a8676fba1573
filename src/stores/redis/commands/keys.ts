import { InvalidOptionError } from "../../../core/errors.ts";

/**
 * Number of fence counters per node. All lock keys with the same hash form a shard and share one
 * counter. The number and the hash are part of the wire format: clients that differ would use
 * different counters.
 */
export const shardCount = 1_024;
export const wireFormat = "1:crc16:1024";

const table = new Uint16Array(256).map((_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});

/** Returns the CRC16 that Redis Cluster uses, over the UTF-8 bytes of `text`. */
export function crc16(text: string): number {
  let crc = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code > 127) return crc16OfBytes(new TextEncoder().encode(text));
    crc = ((crc << 8) ^ (table[((crc >> 8) ^ code) & 0xff] ?? 0)) & 0xffff;
  }
  return crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) ^ (table[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc;
}

export function shardOf(key: string): number {
  return crc16(key) % shardCount;
}

const slotCount = 16_384;

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
 * Returns the hash tag of a key: the first non-empty `{…}`. Redis Cluster hashes only the tag of
 * such a key. Undefined for a key without a tag.
 */
export function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

export function slotOf(key: string): number {
  return crc16(hashTagOf(key) ?? key) % slotCount;
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
  return `holdfast:{${tagForSlot(slotOf(key))}}:${key}:${what}`;
}

function tagForSlot(slot: number): string {
  for (let tag = 0; ; tag += 1) {
    const text = tag.toString(36);
    if (crc16(text) % slotCount === slot) return text;
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
