-- Runs the acquires, touches and releases of one turn without fences, each with its own verdict,
-- as if they had been sent one after the other.
-- KEYS: the lock keys of all operations, then the queues of these, in the same order, but for
--       touches, which need none
-- ARGV: [1] number of lock keys, then runs of operations of one kind: code, how many, lock keys of
--       each, ttl ms, and for each of them
--       A (acquire), T (touch), R (release): owner
--       W (acquire with a place in the queues): owner, ticket and waiter id
--       P (release with a place): owner, place to give up or to keep
-- Returns: a list with one reply for each operation, as the scripts for one of them give it
local call = redis.call
local first_key, header, replies, time = 1, 2, {}, nil
local locks_all = tonumber(ARGV[1])
local function size_of(code)
  if code == 'W' then return 3 end
  return code == 'P' and 2 or 1
end
local record, counters, floor, ttl_max
local values = call('MGET', unpack(KEYS, 1, locks_all))
local first_queue = locks_all + 1
local waits = KEYS[first_queue] and call('EXISTS', unpack(KEYS, first_queue)) > 0

-- @include usual
if not waits and usual() then return replies end
replies = {}
-- Set where somebody waits or wants to: most batches have no use for queues.
local queued = false
local first_of_others, wait_in_queues, claim_places, leave_queues, tell_heads
-- @include operations
-- @include queued
local function acquire(n, first, last, owner, ttl, ticket, id)
  local mine = 0
  for k = first, last do
    local value = view[KEYS[k]]
    if value == owner then
      mine = mine + 1
    elseif value then
      if queued then wait_in_queues(first, last, ticket, id) end
      return 'H ' .. pttl_of(KEYS[k], value) .. ' ' .. value
    end
  end
  if mine == last - first + 1 then return 'G' end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  if queued then
    local left = first_of_others(first, last, ticket, id)
    if left then
      wait_in_queues(first, last, ticket, id)
      return 'Q ' .. left
    end
    claim_places(first, last, ticket, id)
  end
  will_set(n, first, last, owner, ttl)
  return 'G'
end

local function touch(n, first, last, owner)
  for k = first, last do
    local value = view[KEYS[k]]
    if not value then return 'N ABSENT' end
    if value ~= owner then return 'N OTHER' end
  end
  will_touch(n, first, last, nil)
  return 'K'
end

walk(function(n, code, first, last, i, ttl)
  local owner = ARGV[i]
  if code == 'R' then replies[n] = release(first, last, owner, '')
  elseif code == 'P' then replies[n] = release(first, last, owner, ARGV[i + 1])
  elseif code == 'A' then replies[n] = acquire(n, first, last, owner, ttl)
  elseif code == 'W' then
    replies[n] = acquire(n, first, last, owner, ttl, tonumber(ARGV[i + 1]), ARGV[i + 2])
  else replies[n] = touch(n, first, last, owner) end
end)
walk(write)
bury()
if queued then tell_heads() end
return replies
