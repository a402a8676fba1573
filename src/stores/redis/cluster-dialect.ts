import { inspectCall, queueKeyOf, reservingArgs, type Dialect } from "./dialect.ts";
import { ScriptCall } from "./node-call.ts";
import { crc16 } from "./commands/shards.ts";
import {
  readAcquire,
  readRelease,
  readTouch,
  releaseAfterResend,
  touchAfterResend,
} from "./replies.ts";
import * as scripts from "./scripts/generated.ts";

const slotCount = 16_384;
/** A week: beyond any lease (a day at most) and any difference of clocks, which is all it takes. */
const retentionMs = 7 * 86_400_000;

/** What Redis Cluster hashes of a key: the first non-empty `{…}`, else all of it. */
export function hashTagOf(key: string): string | undefined {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : undefined;
}

export function slotOf(key: string): number {
  return crc16(hashTagOf(key) ?? key) % slotCount;
}

/** The counter of a lock key, in the same slot. `x` and `{x}` share one, which fences allow. */
export function counterKeyOf(key: string): string {
  return hashTagOf(key) === undefined ? taggedKeyOf(key, "fence") : `holdfast:${key}:fence`;
}

/** The key of a lock's queue, in the same slot. No two locks share one. */
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

const acquireForm = { script: scripts.clusterAcquire, read: readAcquire };
const releaseForm = {
  script: scripts.clusterRelease,
  read: readRelease,
  afterResend: releaseAfterResend,
};
const touchForm = {
  script: scripts.clusterTouch,
  read: readTouch,
  afterResend: touchAfterResend,
};

/** Fences from a counter beside each lock: a script cannot reach a record in another slot. */
export const clusterDialect: Dialect = {
  fencing: true,
  // Keys of different slots cannot be named in one call.
  batching: undefined,
  renew: undefined,
  acquire(keys, owner, ttlMs, proposal, place) {
    const args = [owner, String(ttlMs), String(proposal), String(retentionMs)];
    if (place !== undefined) args.push(...reservingArgs(place));
    const all = [...keys, ...keys.map(counterKeyOf), ...keys.map(clusterQueueKeyOf)];
    return new ScriptCall(acquireForm, all, args);
  },
  touch(keys, owner, ttlMs, fence) {
    const args = [owner, String(ttlMs), String(fence), String(retentionMs)];
    const all = [...keys, ...keys.map(counterKeyOf)];
    return new ScriptCall(touchForm, all, args);
  },
  release(keys, owner, place = "") {
    const all = [...keys, ...keys.map(clusterQueueKeyOf)];
    return new ScriptCall(releaseForm, all, [owner, place]);
  },
  inspect: (key) => inspectCall(key, clusterQueueKeyOf(key)),
  // In the slot of the lock, where SPUBLISH reaches it.
  channelOf: (key, base) => `${clusterQueueKeyOf(key)}:${base}`,
};
