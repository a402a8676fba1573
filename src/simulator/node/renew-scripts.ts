import { beyondTtlMax } from "./fenced-scripts.ts";
import type { Keyspace } from "./keyspace.ts";
import { mayVote } from "./record-scripts.ts";
import { atOf, ownerAndFence, type ScriptBody } from "./script-context.ts";

/** `renew.lua` */
export const renew: ScriptBody = (context) => {
  const { data, keys, args } = context;
  const { refusal, rid } = mayVote(context);
  if (refusal !== undefined) return refusal;
  const [, , , , ttl = "", ...wholes] = args;
  const tooLong = beyondTtlMax(context, ttl);
  if (tooLong !== undefined) return tooLong;
  const verdicts = renewAll(data, keys.slice(1), wholes, Number(ttl), (value, whole) => {
    const holder = ownerAndFence(value);
    const own = ownerAndFence(whole);
    const isNewer = Number(holder.fence) > Number(own.fence);
    return holder.owner !== own.owner || holder.fence === undefined || isNewer ? "N" : "T";
  });
  return `V ${atOf(context)} ${rid} ${verdicts}`;
};

/** `plain-renew.lua` */
export const plainRenew: ScriptBody = ({ data, keys, args }) => {
  const [ttl, ...owners] = args;
  return `V ${renewAll(data, keys, owners, Number(ttl), () => "N")}`;
};

function renewAll(
  data: Keyspace,
  keys: readonly string[],
  wholes: readonly string[],
  ttlMs: number,
  otherwise: (value: string, whole: string) => string,
): string {
  // All of them first, as MGET does, which takes what is no text for nothing.
  const values = keys.map((key) => data.textOf(key));
  const verdicts = keys.map((key, place) => {
    const value = values[place];
    const whole = wholes[place] ?? "";
    if (value === undefined) return "N";
    if (value !== whole) return otherwise(value, whole);
    if (data.pttl(key) < ttlMs) data.pexpire(key, ttlMs);
    return "K";
  });
  return verdicts.join("");
}
