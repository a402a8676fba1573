import { crc16 } from "./shards.ts";

const slotCount = 16_384;

/** Key of the one record that Holdfast keeps on a node for good. */
export const nodeRecordKey = "holdfast:node";

/** Returns the key of a lock's queue, on a server of its own. */
export function queueKeyOf(key: string): string {
  return `holdfast:waiters:${key}`;
}

/** Returns the channel on which the waiters of one manager are notified, for all its locks. */
export function channelOf(_key: string, base: string): string {
  return `holdfast:wake:${base}`;
}

/** Returns what Redis Cluster hashes of a key if it has a hash tag: the first non-empty `{…}`. */
export function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

export function slotOf(key: string): number {
  return crc16(hashTagOf(key) ?? key) % slotCount;
}

/** Returns the counter of a lock key, in its slot. `x` and `{x}` share one, which fences allow. */
export function counterKeyOf(key: string): string {
  return hashTagOf(key) === undefined ? taggedKeyOf(key, "fence") : `holdfast:${key}:fence`;
}

/** Returns the key of a lock's queue, in the same slot. No two locks share one. */
export function clusterQueueKeyOf(key: string): string {
  return hashTagOf(key) === undefined ? taggedKeyOf(key, "waiters") : queueKeyOf(key);
}

/** For a lock without a hash tag of its own. */
function taggedKeyOf(key: string, what: string): string {
  if (!key.includes("}")) return `holdfast:{${key}}:${what}`;
  // The name cannot stand in braces: take any tag that happens to fall in the same slot.
  return `holdfast:{${tagForSlot(slotOf(key))}}:${key}:${what}`;
}

function tagForSlot(slot: number): string {
  for (let tag = 0; ; tag += 1) {
    const text = tag.toString(36);
    if (crc16(text) % slotCount === slot) return text;
  }
}

/** Returns the channel for one lock, in its slot, where SPUBLISH reaches it. */
export function clusterChannelOf(key: string, base: string): string {
  return `${clusterQueueKeyOf(key)}:${base}`;
}
