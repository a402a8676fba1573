import { InvalidOptionError } from "../core/errors.ts";
import { earlyMsMax } from "../core/mark.ts";
import { knownOptions } from "../core/options.ts";
import { subjectOf } from "../fencing/guard.ts";
import { plausibleFence } from "../fencing/plausible-fence.ts";
import { foreign, replyOf } from "../fencing/redis-replies.ts";
import { redisConnection, redisMs, runScript } from "../fencing/redis-run.ts";
import { fenceFunctions, script, type Script } from "../fencing/redis-scripts.ts";
import type { Ledger } from "./ledger.ts";

export interface RedisLedgerOptions {
  /** Key prefix, put before the name of the schedule. @default "holdfast:schedule:" */
  readonly prefix?: string;
}

const recordFunctions = `${fenceFunctions}
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' and kind ~= 'hash' then return {'foreign', 'a ' .. kind} end
local found = redis.call('HMGET', KEYS[1], 'value', 'fence')
if kind == 'hash' and not (found[1] and found[2] and isFence(found[1]) and isFence(found[2])) then
  return {'foreign', 'a hash without a tick'}
end
`;

/**
 * KEYS: the key of the schedule. Returns {"none"}, {"ok", value} or {"foreign", what the key holds
 * instead}.
 */
const lastScript: Script = script(`${recordFunctions}
if kind == 'none' then return {'none'} end
return {'ok', found[1]}
`);

/**
 * KEYS: the key of the schedule. ARGV: value, fence, time before which the value must not be
 * stored, limit for the lead of that time over this server's clock, both in ms. Returns {"raised"},
 * {"refused"}, {"early"} or {"foreign", what the key holds instead}.
 */
const raiseScript: Script = script(`${recordFunctions}
local time = redis.call('TIME')
if tonumber(ARGV[3]) > time[1] * 1000 + time[2] / 1000 + ARGV[4] then return {'early'} end
if kind == 'hash' then
  local same = found[1] == ARGV[1] and found[2] == ARGV[2]
  local later = greater(ARGV[1], found[1]) and not greater(found[2], ARGV[2])
  if not same and not later then return {'refused'} end
end
redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', ARGV[2])
return {'raised'}
`);

/**
 * Returns a ledger in Redis or Valkey, one key per schedule. It is as durable as the server: with a
 * failover that loses the last writes, a tick may run again. Use one server or a Cluster whose data
 * you rely on, not a server of a quorum.
 */
export function redisLedger(client: unknown, options: RedisLedgerOptions = {}): Ledger {
  knownOptions("options", options, ["prefix"]);
  const { prefix = "holdfast:schedule:" } = options;
  if (typeof prefix !== "string") throw new InvalidOptionError("prefix", "a text", prefix);
  const connection = redisConnection(client);
  return {
    async last(name) {
      const key = prefix + name;
      const [verdict, detail] = replyOf(await runScript(connection, lastScript, key, []));
      if (verdict === "none") return undefined;
      if (verdict !== "ok") throw foreign(key, detail);
      return Number(detail);
    },
    async raise(name, value, lease, dueMs) {
      const key = prefix + name;
      const subject = subjectOf(lease, undefined, name);
      const clock = (): Promise<number> => redisMs(connection, key);
      const fence = await plausibleFence(lease, subject, undefined, clock);
      const args = [String(value), String(fence), String(dueMs), String(earlyMsMax)];
      const [verdict, detail] = replyOf(await runScript(connection, raiseScript, key, args));
      if (verdict === "foreign") throw foreign(key, detail);
      return verdict === "raised" || verdict === "early" ? verdict : "refused";
    },
  };
}
