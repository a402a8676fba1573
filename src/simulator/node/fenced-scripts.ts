import { Queues } from "./queues.ts";
import { exactly, setAll, shown, wrongType } from "./lock-values.ts";
import { mayVote } from "./record-scripts.ts";
import {
  atOf,
  numberOr0,
  ownerAndFence,
  proposalMaxOf,
  type PlaceAsked,
  type ScriptBody,
  type ScriptContext,
} from "./script-context.ts";

import { claimPlaces, firstOfOthers, locksOf, releaseIn, waitInQueues } from "./waiting-scripts.ts";

const fenceMax = 9_007_199_254_740_991;

/** `acquire.lua` */
export const acquire: ScriptBody = (context) => {
  const queues = new Queues(context);
  const reply = acquireIn(context, queues, undefined);
  // Only a script that finds somebody's turn has come looks at the queues.
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return reply;
};

/** The verdict on one acquire; the queues are finished later. */
export function acquireIn(
  context: ScriptContext,
  queues: Queues,
  place: PlaceAsked | undefined,
): string {
  const { data, keys, args } = context;
  const { refusal, rid } = mayVote(context);
  if (refusal !== undefined) return refusal;
  const [, , , , owner = "", ttl = "", proposal = "", ...shards] = args;
  const tooLong = beyondTtlMax(context, ttl);
  if (tooLong !== undefined) return tooLong;

  const asked = locksOf(keys.slice(1));
  const { locks } = asked;
  let mine = 0;
  let found: string | undefined;
  for (const key of locks) {
    const value = data.textOf(key);
    if (value === undefined) continue;
    const holder = ownerAndFence(value);
    if (holder.owner !== owner) {
      const rank = waitInQueues(context, queues, asked, place);
      return `H ${atOf(context)} ${rid} ${data.pttl(key)} ${rank} ${shown(value)}`;
    }
    mine += 1;
    found = holder.fence;
  }
  // A repeat of our own acquire. Its time is not refreshed.
  if (mine === locks.length) return granted(context, rid, found);
  if (mine > 0) return `X PARTIAL ${mine}`;
  const leftMs = firstOfOthers(queues, asked, place);
  if (leftMs !== undefined) {
    const rank = waitInQueues(context, queues, asked, place);
    return `Q ${atOf(context)} ${rid} ${leftMs} ${rank}`;
  }
  claimPlaces(queues, asked, place);

  const record = data.hash(keys[0] ?? "");
  const block = place?.block ?? 1;
  const counters = shards.map((shard) => numberOr0(record?.get(shard)) + block);
  const proposed = Math.min(Number(proposal), proposalMaxOf(context));
  const c = Math.max(proposed, numberOr0(record?.get("floor")) + block, ...counters);
  if (c > fenceMax) return `X FENCE ${c}`;
  const fence = String(c);
  data.hset(
    keys[0] ?? "",
    shards.flatMap((shard) => [shard, fence]),
  );
  return setAll(data, locks, `${owner}|${fence}`, Number(ttl)) ?? granted(context, rid, fence);
}

/** `touch.lua`: raises, extends or proves. */
export const touch: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const { refusal, rid } = mayVote(context);
  if (refusal !== undefined) return refusal;
  const [, , , , owner = "", ttl = "", fence = "", ...shards] = args;
  const tooLong = beyondTtlMax(context, ttl);
  if (tooLong !== undefined) return tooLong;

  const locks = keys.slice(1);
  const no = (why: string): string => `N ${atOf(context)} ${rid} ${why}`;
  let behind = false;
  for (const key of locks) {
    const value = data.get(key);
    if (value === undefined) return no("ABSENT");
    const holder = ownerAndFence(value);
    if (holder.owner !== owner || holder.fence === undefined) return no("OTHER");
    if (Number(holder.fence) > Number(fence)) return no("NEWER");
    if (Number(holder.fence) < Number(fence)) behind = true;
  }
  const record = data.hash(keys[0] ?? "");
  if (behind) {
    const below = shards.filter((shard) => numberOr0(record?.get(shard)) < Number(fence));
    if (below.length > 0)
      data.hset(
        keys[0] ?? "",
        below.flatMap((shard) => [shard, fence]),
      );
  }
  for (const key of locks) {
    if (behind) data.set(key, `${owner}|${fence}`, "keep");
    if (Number(ttl) > 0 && data.pttl(key) < Number(ttl)) data.pexpire(key, Number(ttl));
  }
  return `K ${atOf(context)} ${rid}`;
};

function granted(context: ScriptContext, rid: string, fence: string | undefined): string {
  return ["G", atOf(context), rid, ...(fence === undefined ? [] : [fence])].join(" ");
}

/** A refusal if a lease would last longer than this node allows. */
export function beyondTtlMax(context: ScriptContext, ttl: string): string | undefined {
  const { data, keys, args } = context;
  const own = args[1] === "strict" ? args[3] : undefined;
  const max = data.hash(keys[0] ?? "")?.get("max") ?? own;
  return max !== undefined && Number(ttl) > Number(max) ? `X MAXTTL ${max}` : undefined;
}

/** `release.lua` */
export const release: ScriptBody = (context) => {
  const queues = new Queues(context);
  const reply = releaseIn(
    { ...context, args: context.args.slice(0, 1) },
    queues,
    locksOf(context.keys),
  );
  queues.notifyHeads((lock) => context.data.textOf(lock) === undefined);
  return reply;
};

/** `inspect.lua` */
export const inspect: ScriptBody = (context) => {
  const { data, keys } = context;
  const [key = "", name = ""] = keys;
  const value = data.textOf(key);
  const waiters = Queues.waitersIn(context, name);
  if (value === undefined) return data.pttl(key) === -2 ? `F ${waiters}` : wrongType(key);
  return `I ${waiters} ${data.pttl(key)} ${exactly(value)}`;
};
