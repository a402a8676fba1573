import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { parseFence, rejection, subjectOf, type Fenced } from "../fencing/guard.ts";
import { plausibleFence } from "../fencing/plausible-fence.ts";
import { foreign, replyOf } from "../fencing/redis-replies.ts";
import { redisConnection, redisMs, runScript } from "../fencing/redis-run.ts";
import { fenceFunctions, script, type Script } from "../fencing/redis-scripts.ts";
import { fenceKeptMs, parseState, type Memo, type MemoRecord } from "./memo.ts";

export interface RedisMemoOptions {
  /** Key prefix, put before the key of the work. @default "holdfast:once:" */
  readonly prefix?: string;
}

/** Functions for a record: a hash with the fields `fence`, `state`, `text` and `until`. */
const recordFunctions = `${fenceFunctions}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' and kind ~= 'hash' then return {'foreign', 'a ' .. kind} end
local found = redis.call('HMGET', KEYS[1], 'fence', 'state', 'text', 'until')
if kind == 'hash' and not (found[1] and found[2] and found[4] and isFence(found[1])) then
  return {'foreign', 'a hash without a record'}
end
local live = kind == 'hash' and now < tonumber(found[4])
`;

/**
 * KEYS: the key of the record. Returns {"none"}, {"ok", fence, state, text} or {"foreign", what the
 * key holds instead}.
 */
const readScript: Script = script(`${recordFunctions}
if not live then return {'none'} end
return {'ok', found[1], found[2], found[3]}
`);

/**
 * KEYS: the key of the record. ARGV: fence, state, text, ms for which the record is kept, ms until
 * the fence is forgotten. Returns {"stored"}, {"stale", fence seen}, {"ok", fence, state, text} if
 * the stored record is done, or {"foreign", what the key holds instead}.
 */
const writeScript: Script = script(`${recordFunctions}
if kind == 'hash' and greater(found[1], ARGV[1]) then return {'stale', found[1]} end
if live and found[2] == 'done' then return {'ok', found[1], found[2], found[3]} end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'state', ARGV[2], 'text', ARGV[3],
  'until', string.format('%.0f', now + ARGV[4]))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return {'stored'}
`);

/**
 * Returns a memo in Redis or Valkey, one key per record. It is as durable as the server: with a
 * failover that loses the last writes, work may run again. Use one server or a Cluster whose data
 * you rely on, not the servers of a quorum.
 */
export function redisMemo(client: unknown, options: RedisMemoOptions = {}): Memo {
  knownOptions("options", options, ["prefix"]);
  const { prefix = "holdfast:once:" } = options;
  if (typeof prefix !== "string") throw new InvalidOptionError("prefix", "a text", prefix);
  const connection = redisConnection(client);
  return {
    async read(key) {
      const name = prefix + key;
      const reply = replyOf(await runScript(connection, readScript, name, []));
      return reply[0] === "none" ? undefined : recordOf(reply, name);
    },
    async write(lease: Fenced, key, { state, text }, keepMs) {
      const name = prefix + key;
      const resource = subjectOf(lease, undefined, key);
      const clock = (): Promise<number> => redisMs(connection, name);
      const fence = await plausibleFence(lease, resource, undefined, clock);
      const args = [String(fence), state, text, String(keepMs), String(keepMs + fenceKeptMs)];
      const reply = replyOf(await runScript(connection, writeScript, name, args));
      if (reply[0] === "stored") return undefined;
      if (reply[0] !== "stale") return recordOf(reply, name);
      const seen = parseFence(reply[1], name);
      throw rejection(lease, { resource, fence, seen, guard: "redis" });
    },
  };
}

function recordOf([verdict, fence, state, text]: readonly unknown[], key: string): MemoRecord {
  if (verdict !== "ok") throw foreign(key, fence);
  return { fence: parseFence(fence, key), state: parseState(state, key), text: String(text) };
}
