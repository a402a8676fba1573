-- Runs the acquires, touches and releases of one turn, each with its own verdict, as if they had
-- been sent one after the other.
-- KEYS: [1] node record, [2..] for each operation its lock keys, then their queues (not for T)
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, then for each operation:
--       A or T, number of lock keys, owner, ttl ms, proposal or fence, shard of each key;
--       W (an acquire with a place in the queues), as A, then ticket and waiter id; or
--       R, number of lock keys, owner, place to give up or to keep
-- Returns: a list with one reply for each operation, as acquire, touch and release give it
-- @include record
local first_key = 2
-- @include tell
-- @include queue
-- @include operations
local ask = {'HMGET', record, 'rid', 'st', 'since', 'fmt', 'max', 'ever', 'floor'}
local ops, shards = {}, {}
local i, key = 5, 2
while i <= #ARGV do
  local op = {code = ARGV[i], first = key, last = key + ARGV[i + 1] - 1, owner = ARGV[i + 2]}
  i, key = i + 3, op.last + 1
  if op.code ~= 'T' then key = key + op.last - op.first + 1 end
  if op.code == 'R' then
    op.place = ARGV[i]
    i = i + 1
  else
    op.ttl, op.number, op.shards = ARGV[i], ARGV[i + 1], {}
    i = i + 2
    for _ = op.first, op.last do
      op.shards[#op.shards + 1] = ARGV[i]
      if not shards[ARGV[i]] then
        shards[ARGV[i]] = #ask - 1
        ask[#ask + 1] = ARGV[i]
      end
      i = i + 1
    end
    if op.code == 'W' then
      op.ticket, op.id = tonumber(ARGV[i]), ARGV[i + 1]
      i = i + 2
    end
  end
  ops[#ops + 1] = op
end

local kept = redis.call(unpack(ask))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4], kept[5], kept[6])
local ttl_max = ARGV[2] == 'strict' and tonumber(kept[5] or ARGV[4]) or math.huge
local floor = tonumber(kept[7] or 0)
local counters, changed = {}, {}
for shard, place in pairs(shards) do counters[shard] = tonumber(kept[place] or 0) end

local function raise_counters(op, c, text)
  for _, shard in ipairs(op.shards) do
    if counters[shard] < c then counters[shard], changed[shard] = c, text end
  end
end

local function acquire(op)
  if refusal then return refusal end
  if tonumber(op.ttl) > ttl_max then return 'X MAXTTL ' .. string.format('%.0f', ttl_max) end
  local mine, fence = 0, nil
  for k = op.first, op.last do
    local value = view[KEYS[k]]
    if value then
      local holder, c = owner_and_fence(value)
      if holder ~= op.owner then
        wait_in_queues(op)
        return table.concat({'H', at, rid, pttl_of(KEYS[k]), value}, ' ')
      end
      mine, fence = mine + 1, c
    end
  end
  if mine == op.last - op.first + 1 then return table.concat({'G', at, rid, fence}, ' ') end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  local first = first_of_others(op)
  if first then
    wait_in_queues(op)
    -- It is about to be told that the lock is free, and has no more than that from then on.
    local left = math.min(first.lapse - now_ms(), claim_ms)
    return table.concat({'Q', at, rid, string.format('%.0f', left)}, ' ')
  end
  claim_places(op)
  local c = math.max(tonumber(op.number), floor + 1)
  for _, shard in ipairs(op.shards) do c = math.max(c, counters[shard] + 1) end
  if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
  fence = string.format('%.0f', c)
  raise_counters(op, c, fence)
  will_set(op, op.owner .. '|' .. fence)
  return table.concat({'G', at, rid, fence}, ' ')
end

local function touch(op)
  if refusal then return refusal end
  local t, ttl = tonumber(op.number), tonumber(op.ttl)
  if ttl > ttl_max then return 'X MAXTTL ' .. string.format('%.0f', ttl_max) end
  local behind = false
  for k = op.first, op.last do
    local value = view[KEYS[k]]
    if not value then return table.concat({'N', at, rid, 'ABSENT'}, ' ') end
    local holder, c = owner_and_fence(value)
    if holder ~= op.owner or not c then return table.concat({'N', at, rid, 'OTHER'}, ' ') end
    if tonumber(c) > t then return table.concat({'N', at, rid, 'NEWER'}, ' ') end
    if tonumber(c) < t then behind = true end
  end
  if behind then raise_counters(op, t, op.number) end
  will_touch(op, behind and op.owner .. '|' .. op.number or nil, ttl)
  return table.concat({'K', at, rid}, ' ')
end

for _, op in ipairs(ops) do
  if op.code == 'A' or op.code == 'W' then op.reply = acquire(op)
  elseif op.code == 'T' then op.reply = touch(op)
  else op.reply = release(op) end
end
-- Counters before keys: an error between the two then only skips numbers.
local count = {'HSET', record}
for shard, fence in pairs(changed) do
  count[#count + 1] = shard
  count[#count + 1] = fence
end
if #count > 2 then redis.call(unpack(count)) end
return write_all(ops)
