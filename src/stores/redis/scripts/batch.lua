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
-- Set where somebody waits or wants to: most batches have no use for queues.
local queued = false
local first_of_others, wait_in_queues, claim_places, leave_queues, tell_heads
-- @include operations
local ask = {'HMGET', record, 'rid', 'st', 'since', 'fmt', 'max', 'ever', 'floor'}
-- Where the counter of a shard is in what HMGET answers.
local places, asked = {}, 9
local i, args, key = 5, #ARGV, 2
while i <= args do
  local code, locks = ARGV[i], ARGV[i + 1]
  locks = locks == '1' and 1 or tonumber(locks)
  if code == 'R' then
    i = i + 4
  else
    local from = i + 5
    i = from + locks
    for s = from, i - 1 do
      if not places[ARGV[s]] then
        asked = asked + 1
        ask[asked], places[ARGV[s]] = ARGV[s], asked - 2
      end
    end
    if code == 'W' then i, queued = i + 2, true end
  end
  if code == 'T' then
    key = key + locks
  else
    for q = key + locks, key + 2 * locks - 1 do queued = queued or view[KEYS[q]] end
    key = key + 2 * locks
  end
end
if queued then
  -- @include places
end

local kept = call(unpack(ask))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4], kept[5], kept[6])
local ttl_max = ARGV[2] == 'strict' and tonumber(kept[5] or ARGV[4]) or math.huge
local floor = tonumber(kept[7] or 0)
for place = 8, #kept do kept[place] = tonumber(kept[place] or 0) end
local by = ' ' .. at .. ' ' .. (rid or '')
local granted, done = 'G' .. by .. ' ', 'K' .. by

-- A shard told twice ends with the later number, which is the greater one.
local count = {'HSET', record}
local function raise_counters(from, upto, c, text)
  for s = from, upto do
    local place = places[ARGV[s]]
    if kept[place] < c then
      kept[place], count[#count + 1] = c, ARGV[s]
      count[#count + 1] = text
    end
  end
end

local function acquire(n, first, last, owner, ttl, arg, ticket, id)
  if refusal then return refusal end
  if ttl_max ~= math.huge and tonumber(ttl) > ttl_max then
    return 'X MAXTTL ' .. string.format('%.0f', ttl_max)
  end
  local mine, fence = 0, nil
  for k = first, last do
    local value = view[KEYS[k]]
    if value then
      local holder, c = owner_and_fence(value)
      if holder ~= owner then
        if queued then wait_in_queues(first, last, ticket, id) end
        return 'H' .. by .. ' ' .. pttl_of(KEYS[k], value) .. ' ' .. value
      end
      mine, fence = mine + 1, c
    end
  end
  if mine > 0 then
    if mine == last - first + 1 then return fence and granted .. fence or 'G' .. by end
    return 'X PARTIAL ' .. mine
  end
  if queued then
    local left = first_of_others(first, last, ticket, id)
    if left then
      wait_in_queues(first, last, ticket, id)
      return 'Q' .. by .. ' ' .. left
    end
    claim_places(first, last, ticket, id)
  end
  -- The proposal's own text is the fence, unless another number is granted.
  fence = ARGV[arg]
  local c, from, upto = tonumber(fence), arg + 1, arg + 1 + last - first
  if c <= floor then c, fence = floor + 1, nil end
  for s = from, upto do
    local counter = kept[places[ARGV[s]]]
    if c <= counter then c, fence = counter + 1, nil end
  end
  if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
  fence = fence or string.format('%.0f', c)
  raise_counters(from, upto, c, fence)
  will_set(n, first, last, owner .. '|' .. fence, ttl)
  return granted .. fence
end

local function touch(n, first, last, owner, ttl, arg)
  if refusal then return refusal end
  if ttl_max ~= math.huge and tonumber(ttl) > ttl_max then
    return 'X MAXTTL ' .. string.format('%.0f', ttl_max)
  end
  local t, whole, behind = tonumber(ARGV[arg]), owner .. '|' .. ARGV[arg], false
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
  if behind then raise_counters(arg + 1, arg + 1 + last - first, t, ARGV[arg]) end
  will_touch(n, first, last, behind and whole)
  return done
end

-- Twice the same walk: first the verdicts, then the writes.
local function walk(visit)
  local i, n, key = 5, 0, 2
  while i <= args do
    local code, keys = ARGV[i], ARGV[i + 1]
    keys = keys == '1' and 1 or tonumber(keys)
    n = n + 1
    visit(n, code, key, key + keys - 1, i)
    key = key + (code == 'T' and keys or 2 * keys)
    i = i + (code == 'R' and 4 or 5 + keys)
    if code == 'W' then i = i + 2 end
  end
end

walk(function(n, code, first, last, i)
  local owner = ARGV[i + 2]
  if code == 'R' then replies[n] = release(first, last, owner, ARGV[i + 3])
  elseif code == 'A' then replies[n] = acquire(n, first, last, owner, ARGV[i + 3], i + 4)
  elseif code == 'W' then
    local at = i + 6 + last - first
    local ticket, id = tonumber(ARGV[at]), ARGV[at + 1]
    replies[n] = acquire(n, first, last, owner, ARGV[i + 3], i + 4, ticket, id)
  else replies[n] = touch(n, first, last, owner, ARGV[i + 3], i + 4) end
end)
-- Counters before keys: an error between the two then only skips numbers.
if #count > 2 then call(unpack(count)) end
walk(function(n, code, first, last, i) write(n, code, first, last, ARGV[i + 3]) end)
bury()
if queued then tell_heads() end
return replies
