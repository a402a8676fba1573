-- Runs the acquires, touches and releases of one turn, each with its own verdict, as if they had
-- been sent one after the other.
-- KEYS: [1] node record, then the lock keys of all operations, then the queues of these, in the
--       same order, but for touches, which need none
-- ARGV: [1] verify, [2] admission, [3] format, [4] maxTtl ms, [5] number of lock keys, then runs of
--       operations of one kind: code, how many, lock keys of each, ttl ms, and for each of them
--       A (acquire), T (touch): owner, proposal or fence, shard of each key
--       W (acquire with a place in the queues): as A, then ticket, waiter id, and how many fences
--         to reserve: the one granted and those right below it
--       R (release): the value as it should stand there, or only the owner
--       P (release with a place): as R, then the place to give up or to keep
-- Returns: "S sec usec rid", then one reply for each operation, as acquire, touch and release give
--       it, but short where all is well: "G" (with the proposal as fence), "G fence" and "K". A
--       refusal of W has a rank instead of the last "-": how many waiters come before this one
-- @include fresh-place
-- @include shown

-- Most asks of waiters: another has the lock, and the place of the waiter is fresh. Writes nothing;
-- the long way decides all that is otherwise.
if ARGV[6] == 'W' and #KEYS == 3 then
  local call, strict, owner = redis.call, ARGV[2] == 'strict', ARGV[10]
  local kept = call('HMGET', KEYS[1], 'rid', 'st', 'fmt', 'max')
  local rid, value = kept[1], call('MGET', KEYS[2])[1]
  if rid and kept[3] == ARGV[3] and value and string.sub(value, 1, #owner) ~= owner
    and (strict and kept[2] == 'A' and tonumber(ARGV[9]) <= tonumber(kept[4] or ARGV[4])
      or not (strict or kept[2] or kept[4]))
  then
    local info = ARGV[1] == '1' and redis.pcall('INFO', 'server')
    if not info or (type(info) == 'string' and string.find(info, 'run_id:' .. rid, 1, true)) then
      local time = call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local rank = rank_in(KEYS[3], ARGV[14], ARGV[13], now)
      if rank then
        local by, left = strict and string.sub(rid, 1, 12) or '-', call('PTTL', KEYS[2])
        by = ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. by
        return {'S' .. by, 'H' .. by .. ' ' .. left .. ' ' .. rank .. ' ' .. shown(value)}
      end
    end
  end
end
-- @include record
-- @include wrong-type
local call = redis.call
local first_key, header, replies = 2, 6, {}
local locks_all = tonumber(ARGV[5])
local function size_of(code, locks)
  if code == 'R' then return 1 elseif code == 'P' then return 2 end
  return 2 + locks + (code == 'W' and 3 or 0)
end

-- The counters that acquires look at, each once.
local ask = {'HMGET', record, 'rid', 'st', 'fmt', 'max', 'floor'}
local counters, i = {}, header
while i <= #ARGV do
  local code, ops, locks = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local size = size_of(code, locks)
  i = i + 4
  if code == 'A' or code == 'W' then
    for from = i + 2, i + 2 + (ops - 1) * size, size do
      for s = from, from + locks - 1 do
        local shard = ARGV[s]
        if not counters[shard] then counters[shard], ask[#ask + 1] = 0, shard end
      end
    end
  end
  i = i + ops * size
end
local kept = call(unpack(ask))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4])
local ttl_max = tonumber(kept[4] or ARGV[2] == 'strict' and ARGV[4] or math.huge)
local floor = tonumber(kept[5] or 0)
for place = 6, #kept do counters[ask[place + 2]] = tonumber(kept[place] or 0) end
local by = ' ' .. at .. ' ' .. (rid or '-')
local values = call('MGET', unpack(KEYS, first_key, locks_all + 1))
local first_queue = locks_all + 2
local waits = KEYS[first_queue] and call('EXISTS', unpack(KEYS, first_queue)) > 0

-- @include usual
if not refusal and not waits and usual() then
  table.insert(replies, 1, 'S' .. by)
  return replies
end
replies = {}
-- Set where somebody waits or wants to: most batches have no use for queues.
local queued = false
local first_of_others, wait_in_queues, claim_places, leave_queues, tell_heads
-- @include operations
-- @include queued

-- A shard told twice ends with the later number, which is the greater one.
local count = {'HSET', record}
local function raise_counters(from, upto, c, text)
  for s = from, upto do
    local shard = ARGV[s]
    if not counters[shard] then counters[shard] = tonumber(call('HGET', record, shard) or 0) end
    if counters[shard] < c then
      counters[shard], count[#count + 1] = c, shard
      count[#count + 1] = text
    end
  end
end

local function acquire(n, first, last, i, ttl, block, ticket, id)
  if refusal then return refusal end
  if tonumber(ttl) > ttl_max then return 'X MAXTTL ' .. string.format('%.0f', ttl_max) end
  local owner, mine, fence = ARGV[i], 0, nil
  for k = first, last do
    local value = view[KEYS[k]]
    if value then
      local holder, c = owner_and_fence(value)
      if holder ~= owner then
        local rank = queued and wait_in_queues(first, last, ticket, id) or '-'
        return 'H' .. by .. ' ' .. pttl_of(KEYS[k], value) .. ' ' .. rank .. ' ' .. shown(value)
      end
      mine, fence = mine + 1, c
    end
  end
  if mine > 0 then
    if mine <= last - first then return 'X PARTIAL ' .. mine end
    return fence == ARGV[i + 1] and 'G' or 'G ' .. (fence or '-')
  end
  if queued then
    local left = first_of_others(first, last, ticket, id)
    if left then
      return 'Q' .. by .. ' ' .. left .. ' ' .. wait_in_queues(first, last, ticket, id)
    end
    claim_places(first, last, ticket, id)
  end
  fence = ARGV[i + 1]
  local c, from, upto = tonumber(fence), i + 2, i + 2 + last - first
  if c > proposal_max then c, fence = proposal_max, nil end
  if c < floor + block then c, fence = floor + block, nil end
  for s = from, upto do
    local counter = counters[ARGV[s]]
    if c < counter + block then c, fence = counter + block, nil end
  end
  if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
  local text = fence or string.format('%.0f', c)
  raise_counters(from, upto, c, text)
  local refused = will_set(n, first, last, owner .. '|' .. text, ttl)
  return refused or fence and 'G' or 'G ' .. text
end

local function touch(n, first, last, i, ttl)
  if refusal then return refusal end
  if tonumber(ttl) > ttl_max then return 'X MAXTTL ' .. string.format('%.0f', ttl_max) end
  local owner, text, behind = ARGV[i], ARGV[i + 1], false
  local t, whole = tonumber(text), owner .. '|' .. text
  for k = first, last do
    local value = view[KEYS[k]]
    if not value then return 'N' .. by .. ' ABSENT' end
    if value ~= whole then
      local holder, c = owner_and_fence(value)
      if holder ~= owner or not c then return 'N' .. by .. ' OTHER' end
      if tonumber(c) > t then return 'N' .. by .. ' NEWER' end
      behind = true
    end
  end
  if behind then raise_counters(i + 2, i + 2 + last - first, t, text) end
  will_touch(n, first, last, behind and whole)
  return 'K'
end

-- Twice the same walk: first the verdicts, then the writes.
walk(function(n, code, first, last, i, ttl)
  if code == 'R' then replies[n] = release(first, last, ARGV[i], '')
  elseif code == 'P' then replies[n] = release(first, last, ARGV[i], ARGV[i + 1])
  elseif code == 'A' then replies[n] = acquire(n, first, last, i, ttl, 1)
  elseif code == 'W' then
    local at = i + 3 + last - first
    local block = tonumber(ARGV[at + 2])
    replies[n] = acquire(n, first, last, i, ttl, block, tonumber(ARGV[at]), ARGV[at + 1])
  else replies[n] = touch(n, first, last, i, ttl) end
end)
-- Counters before keys: an error between the two then only skips numbers.
if #count > 2 then call(unpack(count)) end
walk(write)
bury()
if queued then tell_heads() end
table.insert(replies, 1, 'S' .. by)
return replies
