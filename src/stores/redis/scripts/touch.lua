-- Raises the fence of a held lock, extends it, or (with the fence it has and no ttl) proves it.
-- Never creates a key, never shortens a life.
-- KEYS: [1] node record, [2..] lock keys
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] owner, [6] ttl ms or 0,
--       [7] fence, [8..] shard of each lock key
-- Returns: "K sec usec rid"                  done, on every key
--          "N sec usec rid WHY"              not ours any more: ABSENT, OTHER, or NEWER
--          "B sec usec rid since ever max"   this node may not vote
--          "X CODE detail"                   refused, waiting does not help
-- @include record
-- @include too-long
local owner, ttl, t = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local kept = redis.call('HMGET', record, 'rid', 'st', 'fmt', 'max', unpack(ARGV, 8))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4])
if refusal then return refusal end
refusal = too_long(ttl, kept[4])
if refusal then return refusal end

local behind = false
for i = 2, #KEYS do
  local value = redis.call('GET', KEYS[i])
  if not value then return table.concat({'N', at, rid, 'ABSENT'}, ' ') end
  local holder, c = owner_and_fence(value)
  if holder ~= owner or not c then return table.concat({'N', at, rid, 'OTHER'}, ' ') end
  -- A greater fence under our own name is a late acquire of ours that re-created the key, perhaps
  -- after another's whole tenure.
  if tonumber(c) > t then return table.concat({'N', at, rid, 'NEWER'}, ' ') end
  if tonumber(c) < t then behind = true end
end
if behind then
  local count = {'HSET', record}
  for i = 8, #ARGV do
    if tonumber(kept[i - 3] or 0) < t then
      count[#count + 1] = ARGV[i]
      count[#count + 1] = ARGV[7]
    end
  end
  if #count > 2 then redis.call(unpack(count)) end
end
for i = 2, #KEYS do
  if behind then redis.call('SET', KEYS[i], owner .. '|' .. ARGV[7], 'KEEPTTL') end
  if ttl > 0 and redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
end
return table.concat({'K', at, rid}, ' ')
