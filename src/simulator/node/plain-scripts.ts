import type { ScriptBody } from "./script-context.ts";

/** `plain-acquire.lua` */
export const plainAcquire: ScriptBody = ({ data, keys, args }) => {
  const [owner = "", ttl = ""] = args;
  let mine = 0;
  for (const key of keys) {
    const value = data.get(key);
    if (value === owner) mine += 1;
    else if (value !== undefined) return `H ${data.pttl(key)} ${value}`;
  }
  if (mine === keys.length) return "G";
  if (mine > 0) return `X PARTIAL ${mine}`;
  for (const key of keys) data.set(key, owner, Number(ttl));
  return "G";
};

/** `plain-touch.lua` */
export const plainTouch: ScriptBody = ({ data, keys, args }) => {
  const [owner = "", ttl = ""] = args;
  for (const key of keys) {
    const value = data.get(key);
    if (value === undefined) return "N ABSENT";
    if (value !== owner) return "N OTHER";
  }
  for (const key of keys) {
    if (Number(ttl) > 0 && data.pttl(key) < Number(ttl)) data.pexpire(key, Number(ttl));
  }
  return "K";
};
