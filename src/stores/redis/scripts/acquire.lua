-- Grants all lock keys to one owner, or none.
-- KEYS: [1] node record, [2..n] lock keys, [n+1..] their queues
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] owner, [6] ttl ms,
--       [7] proposal, [8..] shard of each lock key
-- Returns: "G sec usec rid fence"            granted, or found granted to this owner before
--          "H sec usec rid pttl value"       held by another
--          "Q sec usec rid left"             free, but others wait; the first has so many ms
--          "B sec usec rid since ever max"   this node may not vote
--          "X CODE detail"                   refused, waiting does not help
-- @include record
local owner, ttl = ARGV[5], ARGV[6]
local kept = redis.call('HMGET', record, 'rid', 'st', 'fmt', 'max', 'floor', unpack(ARGV, 8))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4])
if refusal then return refusal end
if ARGV[2] == 'strict' and tonumber(ttl) > tonumber(kept[4] or ARGV[4]) then
  return 'X MAXTTL ' .. (kept[4] or ARGV[4])
end

local locks = (#KEYS - 1) / 2
local mine, fence = 0, nil
for i = 2, locks + 1 do
  local value = redis.call('GET', KEYS[i])
  if value then
    local holder, c = owner_and_fence(value)
    if holder ~= owner then
      return table.concat({'H', at, rid, redis.call('PTTL', KEYS[i]), value}, ' ')
    end
    mine, fence = mine + 1, c
  end
end
if mine == locks then
  -- A repeat of our own acquire. Its time is not refreshed: validity counts from the first send.
  return table.concat({'G', at, rid, fence}, ' ')
end
if mine > 0 then return 'X PARTIAL ' .. mine end

local texts = redis.call('MGET', unpack(KEYS, locks + 2))
for i = 1, locks do
  if texts[i] then
    -- @include tell
    -- @include queue
    local first
    for n = i, locks do
      if texts[n] and not first then
        first = queue_of(KEYS[locks + 1 + n], KEYS[n + 1], texts[n])[1]
      end
    end
    write_queues(function() return true end)
    if first then
      return table.concat({'Q', at, rid, string.format('%.0f', first.lapse - now_ms())}, ' ')
    end
    break
  end
end

-- The proposal's own text is the fence, unless another number is granted.
fence = ARGV[7]
local c = tonumber(fence)
for i = 5, #kept do
  local counter = tonumber(kept[i] or 0)
  if counter >= c then c, fence = counter + 1, nil end
end
if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
fence = fence or string.format('%.0f', c)
local whole = owner .. '|' .. fence
-- Counters before keys: an error between the two then only skips a number.
if locks == 1 then
  redis.call('HSET', record, ARGV[8], fence)
  redis.call('SET', KEYS[2], whole, 'PX', ttl)
else
  local count = {'HSET', record}
  for i = 8, #ARGV do
    count[#count + 1] = ARGV[i]
    count[#count + 1] = fence
  end
  redis.call(unpack(count))
  for i = 2, locks + 1 do redis.call('SET', KEYS[i], whole, 'PX', ttl) end
end
return 'G ' .. at .. ' ' .. rid .. ' ' .. fence
