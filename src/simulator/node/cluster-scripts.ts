import { setAll, shown } from "./lock-values.ts";
import { Queues } from "./queues.ts";
import {
  atOf,
  numberOr0,
  ownerAndFence,
  placeOf,
  proposalMaxOf,
  type ScriptBody,
} from "./script-context.ts";

import { claimPlaces, firstOfOthers, locksOf, releaseIn, waitInQueues } from "./waiting-scripts.ts";

const fenceMax = 9_007_199_254_740_991;

/** `cluster-acquire.lua` */
export const clusterAcquire: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const [owner = "", ttl = "", proposal = "", retention = "", ...wanted] = args;
  const count = keys.length / 3;
  const locks = keys.slice(0, count);
  const counters = keys.slice(count, 2 * count);
  const asked = { locks, queues: keys.slice(2 * count) };
  const place = wanted.length === 0 ? undefined : placeOf(wanted);
  const block = place?.block ?? 1;
  const queues = new Queues(context, true);
  const isFree = (lock: string): boolean => data.textOf(lock) === undefined;
  let mine = 0;
  let found = "";
  let held: { readonly pttlMs: number; readonly value: string } | undefined;
  for (const key of locks) {
    const value = data.textOf(key);
    if (value === undefined) continue;
    const holder = ownerAndFence(value);
    if (holder.fence === undefined || holder.owner !== owner) {
      held ??= { pttlMs: data.pttl(key), value: shown(value) };
      continue;
    }
    mine += 1;
    found = holder.fence;
  }
  if (mine === locks.length) return `G ${atOf(context)} - ${found}`;
  if (mine > 0 && held === undefined) return `X PARTIAL ${mine}`;
  // The script looks at every queue before it decides, and so notifies every head of a free lock.
  for (const [index, lock] of locks.entries()) queues.at(asked.queues[index] ?? "", lock);
  const leftMs = firstOfOthers(queues, asked, place);
  if (held !== undefined || leftMs !== undefined) {
    const rank = waitInQueues(context, queues, asked, place);
    queues.notifyHeads(isFree);
    if (held === undefined) return `Q ${atOf(context)} - ${leftMs} ${rank}`;
    return `H ${atOf(context)} - ${held.pttlMs} ${rank} ${held.value}`;
  }
  claimPlaces(queues, asked, place);
  const proposed = Math.min(Number(proposal), proposalMaxOf(context));
  const c = Math.max(proposed, ...counters.map((key) => numberOr0(data.get(key)) + block));
  if (c > fenceMax) return `X FENCE ${c}`;
  for (const key of counters) data.set(key, String(c), Number(retention));
  return setAll(data, locks, `${owner}|${c}`, Number(ttl)) ?? `G ${atOf(context)} - ${c}`;
};

/** `cluster-release.lua` */
export const clusterRelease: ScriptBody = (context) => {
  const queues = new Queues(context, true);
  const reply = releaseIn(context, queues, locksOf(context.keys));
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return reply;
};

/** `cluster-touch.lua` */
export const clusterTouch: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const [owner = "", ttl = "", fence = "", retention = ""] = args;
  const locks = keys.slice(0, keys.length / 2);
  const no = (why: string): string => `N ${atOf(context)} - ${why}`;
  let behind = false;
  for (const key of locks) {
    const value = data.get(key);
    if (value === undefined) return no("ABSENT");
    const holder = ownerAndFence(value);
    if (holder.fence === undefined || holder.owner !== owner) return no("OTHER");
    if (Number(holder.fence) > Number(fence)) return no("NEWER");
    if (Number(holder.fence) < Number(fence)) behind = true;
  }
  for (const key of keys.slice(keys.length / 2)) {
    const counter = Math.max(numberOr0(data.get(key)), Number(fence));
    data.set(key, String(counter), Number(retention));
  }
  for (const key of locks) {
    if (behind) data.set(key, `${owner}|${fence}`, "keep");
    if (Number(ttl) > 0 && data.pttl(key) < Number(ttl)) data.pexpire(key, Number(ttl));
  }
  return `K ${atOf(context)} -`;
};
