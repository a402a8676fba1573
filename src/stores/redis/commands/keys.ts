import { crc16 } from "./shards.ts";

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
