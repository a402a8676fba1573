-- Grants all lock keys to one owner, or none.
-- KEYS: [1] node record, [2..n] lock keys, [n+1..] their queues
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] owner, [6] ttl ms,
--       [7] proposal, [8..] shard of each lock key
-- Returns: "G sec usec rid fence"            granted, or found granted to this owner before
--          "H sec usec rid pttl value"       held by another
--          "Q sec usec rid left"             free, but others wait; the first has so many ms
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
    and (not strict or kept[2] == 'A' and tonumber(ARGV[6]) <= tonumber(kept[4] or ARGV[4]))
    and c > tonumber(kept[5] or 0) and c > tonumber(kept[6] or 0) and c <= 9007199254740991
  then
    local info = ARGV[1] == '1' and redis.pcall('INFO', 'server')
    if not info or (type(info) == 'string' and string.find(info, 'run_id:' .. rid, 1, true)) then
      -- Counter before key: an error between the two then only skips a number.
      call('HSET', KEYS[1], shard, fence)
      call('SET', KEYS[2], ARGV[5] .. '|' .. fence, 'PX', ARGV[6])
      local time, by = call('TIME'), strict and string.sub(rid, 1, 12) or '-'
      return 'G ' .. time[1] .. ' ' .. time[2] .. ' ' .. by .. ' ' .. fence
    end
  end
end
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
    if first then return table.concat({'Q', at, rid, time_left(first)}, ' ') end
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
-- Counters before keys, as above.
local count = {'HSET', record}
for i = 8, #ARGV do
  count[#count + 1] = ARGV[i]
  count[#count + 1] = fence
end
redis.call(unpack(count))
for i = 2, locks + 1 do redis.call('SET', KEYS[i], owner .. '|' .. fence, 'PX', ttl) end
return 'G ' .. at .. ' ' .. rid .. ' ' .. fence
