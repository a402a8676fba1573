-- Grants all lock keys to one owner, or none.
-- KEYS: [1] node record, [2..n] lock keys, [n+1..] their queues
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] owner, [6] ttl ms,
--       [7] proposal, [8..] shard of each lock key
-- Returns: "G sec usec rid fence"            granted, or found granted to this owner before
--          "H sec usec rid pttl - value"     held by another
--          "Q sec usec rid left -"           free, but others wait; the first has so many ms
--          "B sec usec rid since ever max"   this node may not vote
--          "X CODE detail"                   refused, waiting does not help

-- Most are one free lock that nobody waits for, on a node that may vote, with a proposal greater
-- than all before. Looks first and writes last; the long way decides all that is otherwise.
if #KEYS == 3 then
  local call, strict, shard, fence = redis.call, ARGV[2] == 'strict', ARGV[8], ARGV[7]
  local kept = call('HMGET', KEYS[1], 'rid', 'st', 'fmt', 'max', 'floor', shard)
  local rid, c = kept[1], tonumber(fence)
  -- Whatever is there, also what is no lock: the long way looks what it is.
  if call('EXISTS', KEYS[2], KEYS[3]) == 0 and rid and kept[3] == ARGV[3]
    and (strict and kept[2] == 'A' and tonumber(ARGV[6]) <= tonumber(kept[4] or ARGV[4])
      -- A strict node and a client with admission off: the long way.
      or not (strict or kept[2] or kept[4]))
    and c > tonumber(kept[5] or 0) and c > tonumber(kept[6] or 0) and c <= 9007199254740991
  then
    local info, time = ARGV[1] == '1' and redis.pcall('INFO', 'server'), call('TIME')
    -- A proposal far ahead of time is for the long way to cut.
    if c <= (time[1] + 60) * 1000000
      and (not info or (type(info) == 'string' and string.find(info, 'run_id:' .. rid, 1, true)))
    then
      -- Counter before key: an error between the two then only skips a number.
      call('HSET', KEYS[1], shard, fence)
      call('SET', KEYS[2], ARGV[5] .. '|' .. fence, 'PX', ARGV[6])
      local by = strict and string.sub(rid, 1, 12) or '-'
      return 'G ' .. time[1] .. ' ' .. time[2] .. ' ' .. by .. ' ' .. fence
    end
  end
end
-- @include record
-- @include too-long
-- @include shown
-- @include wrong-type
local owner, ttl = ARGV[5], ARGV[6]
local kept = redis.call('HMGET', record, 'rid', 'st', 'fmt', 'max', 'floor', unpack(ARGV, 8))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4])
if refusal then return refusal end
refusal = too_long(ttl, kept[4])
if refusal then return refusal end

local locks = (#KEYS - 1) / 2
local mine, fence = 0, nil
local values = redis.call('MGET', unpack(KEYS, 2, locks + 1))
for i = 2, locks + 1 do
  local value = values[i - 1]
  if value then
    local holder, c = owner_and_fence(value)
    if holder ~= owner then
      return table.concat({'H', at, rid, redis.call('PTTL', KEYS[i]), '-', shown(value)}, ' ')
    end
    mine, fence = mine + 1, c
  end
end
if mine == locks then
  -- A repeat of our own acquire. Its time is not refreshed: validity counts from the first send.
  return table.concat({'G', at, rid, fence}, ' ')
end
if mine > 0 then return 'X PARTIAL ' .. mine end

if redis.call('EXISTS', unpack(KEYS, locks + 2)) > 0 then
  -- @include tell
  -- @include queue
  local first
  for n = 1, locks do
    first = first or head_of(queue_of(KEYS[locks + 1 + n], KEYS[n + 1]))
  end
  local left = first and time_left(first)
  notify_heads(function() return true end)
  if left then return table.concat({'Q', at, rid, left, '-'}, ' ') end
end

-- The proposal's own text is the fence, unless another number is granted.
fence = ARGV[7]
local c = tonumber(fence)
if c > proposal_max then c, fence = proposal_max, nil end
for i = 5, #kept do
  local counter = tonumber(kept[i] or 0)
  if counter >= c then c, fence = counter + 1, nil end
end
if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
fence = fence or string.format('%.0f', c)
-- Counters before keys, as above.
local count = {'HSET', record}
for i = 8, #ARGV do
  count[#count + 1] = ARGV[i]
  count[#count + 1] = fence
end
redis.call(unpack(count))
for i = 2, locks + 1 do
  -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
  if not redis.call('SET', KEYS[i], owner .. '|' .. fence, 'PX', ttl, 'NX') then
    for undo = 2, i - 1 do redis.call('DEL', KEYS[undo]) end
    return wrong_type(KEYS[i])
  end
end
return 'G ' .. at .. ' ' .. rid .. ' ' .. fence
