import { atOf, numberOr0, ownerAndFence, type ScriptBody } from "./script-context.ts";

const fenceMax = 9_007_199_254_740_991;

/** `cluster-acquire.lua` */
export const clusterAcquire: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const [owner = "", ttl = "", proposal = "", retention = ""] = args;
  const locks = keys.slice(0, keys.length / 2);
  const counters = keys.slice(keys.length / 2);
  let mine = 0;
  let found = "";
  for (const key of locks) {
    const value = data.get(key);
    if (value === undefined) continue;
    const holder = ownerAndFence(value);
    if (holder.fence === undefined || holder.owner !== owner) {
      return `H ${atOf(context)} - ${data.pttl(key)} ${value}`;
    }
    mine += 1;
    found = holder.fence;
  }
  if (mine === locks.length) return `G ${atOf(context)} - ${found}`;
  if (mine > 0) return `X PARTIAL ${mine}`;
  const c = Math.max(Number(proposal), ...counters.map((key) => numberOr0(data.get(key)) + 1));
  if (c > fenceMax) return `X FENCE ${c}`;
  for (const key of counters) data.set(key, String(c), Number(retention));
  for (const key of locks) data.set(key, `${owner}|${c}`, Number(ttl));
  return `G ${atOf(context)} - ${c}`;
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
