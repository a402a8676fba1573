-- Runs the acquires, touches and releases of one turn without fences, each with its own verdict,
-- as if they had been sent one after the other.
-- KEYS: the lock keys of all operations, then the queues of these, in the same order, but for
--       touches, which need none
-- ARGV: [1] number of lock keys, then runs of operations of one kind: code, how many, lock keys of
--       each, ttl ms, and for each of them
--       A (acquire), T (touch), R (release): owner
--       W (acquire with a place in the queues): owner, ticket and waiter id
--       P (release with a place): owner, place to give up or to keep
-- Returns: a list with one reply for each operation, as the scripts for one of them give it. A
--       refusal of W has a rank instead of the "-" before the value: how many waiters come first
-- @include fresh-place
-- @include shown

-- Most asks of waiters, as in batch: another has the lock, and the place of the waiter is fresh.
if ARGV[2] == 'W' and #KEYS == 2 then
  local value = redis.call('MGET', KEYS[1])[1]
  if value and value ~= ARGV[6] then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local rank = rank_in(KEYS[2], ARGV[8], ARGV[7], now)
    if rank then
      local left = redis.call('PTTL', KEYS[1])
      return {table.concat({'H', time[1], time[2], '-', left, rank, shown(value)}, ' ')}
    end
  end
end
-- @include wrong-type
local call = redis.call
local first_key, header, replies, time = 1, 2, {}, nil
local locks_all = tonumber(ARGV[1])
local function size_of(code)
  if code == 'W' then return 3 end
  return code == 'P' and 2 or 1
end
local record, counters, floor, ttl_max, proposal_max
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

-- Refusals carry the server's time. Grants do not: most of them have no use for it.
local function by()
  time = time or call('TIME')
  return ' ' .. time[1] .. ' ' .. time[2] .. ' - '
end

local function acquire(n, first, last, owner, ttl, ticket, id)
  local mine = 0
  for k = first, last do
    local value = view[KEYS[k]]
    if value == owner then
      mine = mine + 1
    elseif value then
      local rank = queued and wait_in_queues(first, last, ticket, id) or '-'
      return 'H' .. by() .. pttl_of(KEYS[k], value) .. ' ' .. rank .. ' ' .. shown(value)
    end
  end
  if mine == last - first + 1 then return 'G' end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  if queued then
    local left = first_of_others(first, last, ticket, id)
    if left then
      return 'Q' .. by() .. left .. ' ' .. wait_in_queues(first, last, ticket, id)
    end
    claim_places(first, last, ticket, id)
  end
  return will_set(n, first, last, owner, ttl) or 'G'
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
