-- Extends many locks of one key each, where each is as its owner left it. What has to be raised
-- first is left to touch. Never creates a key, never shortens a life.
-- KEYS: [1] node record, [2..] lock keys
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] ttl ms, [6..] the value of each
--       lock key: owner|fence
-- Returns: "V sec usec rid verdicts"         a letter for each: K done, N not ours any more,
--                                            T behind: to be touched
--          "B sec usec rid since ever max"   this node may not vote
--          "X CODE detail"                   refused, waiting does not help
-- @include record
-- @include too-long
local ttl = tonumber(ARGV[5])
local kept = redis.call('HMGET', record, 'rid', 'st', 'fmt', 'max')
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4])
if refusal then return refusal end
refusal = too_long(ttl, kept[4])
if refusal then return refusal end

local function verdict_on(value, whole)
  if not value then return 'N' end
  local holder, c = owner_and_fence(value)
  local owner, t = owner_and_fence(whole)
  -- A greater fence under our own name is a late acquire of ours, as in touch.
  if holder ~= owner or not c or tonumber(c) > tonumber(t) then return 'N' end
  return 'T'
end

local values, verdicts = redis.call('MGET', unpack(KEYS, 2)), {}
for n = 1, #values do
  local key, whole = KEYS[n + 1], ARGV[n + 5]
  if values[n] == whole then
    if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
    verdicts[n] = 'K'
  else
    verdicts[n] = verdict_on(values[n], whole)
  end
end
return table.concat({'V', at, rid, table.concat(verdicts)}, ' ')
