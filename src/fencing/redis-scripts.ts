import { createHash } from "node:crypto";

/** Lua script and its SHA-1. Servers cache a script under its SHA-1. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

export function script(source: string): Script {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/**
 * Lua functions that compare fences as text. Lua numbers are doubles, exact up to 2^53, but fences
 * go up to 2^63. Fences have no leading zeros, so the longer text is greater; texts of equal length
 * compare by character.
 */
export const fenceFunctions: string = `
local function greater(a, b)
  if #a ~= #b then return #a > #b end
  return a > b
end
local function isFence(text) return string.match(text, '^[1-9]%d*$') ~= nil end
`;

/**
 * Writes or deletes a value, and stores its fence. KEYS: the guarded key. ARGV: fence, "set" or
 * "delete", value, ttl in ms or "0" (none), ms until the fence is forgotten or "0" (never),
 * encoding of the value or "" (text). Returns {"ok"}, {"stale", stored fence} or {"foreign", what
 * the key holds instead}.
 */
export const writeScript: Script = script(`${fenceFunctions}
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind ~= 'none' then
  if kind ~= 'hash' then return {'foreign', 'a ' .. kind} end
  local last = redis.call('HGET', KEYS[1], 'fence')
  if not last or not isFence(last) then return {'foreign', 'a hash without a fence'} end
  if greater(last, ARGV[1]) then return {'stale', last} end
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
redis.call('HDEL', KEYS[1], 'value', 'until', 'encoding')
if ARGV[2] == 'set' then
  redis.call('HSET', KEYS[1], 'value', ARGV[3])
  if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'encoding', ARGV[6]) end
  if ARGV[4] ~= '0' then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + ARGV[4]))
  end
end
if ARGV[5] == '0' then redis.call('PERSIST', KEYS[1])
else redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return {'ok'}
`);

/**
 * Reads a value with its fence. KEYS: the guarded key. Returns {"none"}, {"ok", fence, value or
 * false if deleted or expired, encoding or false} or {"foreign", what the key holds instead}.
 */
export const readScript: Script = script(`${fenceFunctions}
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {'none'} end
if kind ~= 'hash' then return {'foreign', 'a ' .. kind} end
local found = redis.call('HMGET', KEYS[1], 'fence', 'value', 'until', 'encoding')
if not found[1] or not isFence(found[1]) then return {'foreign', 'a hash without a fence'} end
if found[3] then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if now >= tonumber(found[3]) then found[2] = false end
end
return {'ok', found[1], found[2], found[4]}
`);

/**
 * Stores the fence of one resource unless a greater one is stored. KEYS: the key with that fence.
 * ARGV: fence, ms until the fence is forgotten or "0" (never). Returns the fence stored then.
 */
export const admitScript: Script = script(`${fenceFunctions}
local last = redis.call('GET', KEYS[1])
if last then
  if not isFence(last) then return redis.error_reply('ERR not a fence: ' .. last) end
  if greater(last, ARGV[1]) then return last end
end
if ARGV[2] == '0' then redis.call('SET', KEYS[1], ARGV[1])
else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return ARGV[1]
`);

/**
 * Replaces a stored fence above the limit. KEYS: the guarded key, or the key that keeps the fence
 * of one resource. ARGV: new fence, limit. Returns {"ok", 1 if replaced, otherwise 0} or
 * {"foreign", what the key holds instead}.
 */
export const lowerScript: Script = script(`${fenceFunctions}
local kind = redis.call('TYPE', KEYS[1])['ok']
if kind == 'none' then return {'ok', 0} end
if kind ~= 'hash' and kind ~= 'string' then return {'foreign', 'a ' .. kind} end
local last = kind == 'hash' and redis.call('HGET', KEYS[1], 'fence')
  or kind == 'string' and redis.call('GET', KEYS[1])
if not last or not isFence(last) then return {'foreign', 'a ' .. kind .. ' without a fence'} end
if not greater(last, ARGV[2]) then return {'ok', 0} end
if kind == 'hash' then redis.call('HSET', KEYS[1], 'fence', ARGV[1])
else
  local left = redis.call('PTTL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1])
  if left > 0 then redis.call('PEXPIRE', KEYS[1], left) end
end
return {'ok', 1}
`);
