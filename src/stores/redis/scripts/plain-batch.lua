-- Runs the acquires, touches and releases of one turn without fences, each with its own verdict,
-- as if they had been sent one after the other.
-- KEYS: [1..] for each operation its lock keys, then their queues (not for T)
-- ARGV: for each operation: A or T, number of lock keys, owner, ttl ms; W (an acquire with a place
--       in the queues), as A, then ticket and waiter id; or R, number of lock keys, owner, place to
--       give up or to keep
-- Returns: a list with one reply for each operation, as the scripts for one of them give it
local first_key, time = 1, nil
-- Set where somebody waits or wants to: most batches have no use for queues.
local queued = false
local first_of_others, wait_in_queues, claim_places, leave_queues, tell_heads
-- @include operations
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

-- The same walk again and again: who waits, then the verdicts, then the writes.
local args = #ARGV
local function walk(visit)
  local i, n, key = 1, 0, 1
  while i <= args do
    local code, keys = ARGV[i], ARGV[i + 1]
    keys = keys == '1' and 1 or tonumber(keys)
    n = n + 1
    visit(n, code, key, key + keys - 1, i)
    i = i + (code == 'W' and 6 or 4)
    key = key + (code == 'T' and keys or 2 * keys)
  end
end

walk(function(_, code, first, last)
  if code == 'W' then queued = true end
  if code == 'T' then return end
  for q = last + 1, 2 * last - first + 1 do queued = queued or view[KEYS[q]] end
end)
if queued then
  -- @include places
end
walk(function(n, code, first, last, i)
  local owner, third = ARGV[i + 2], ARGV[i + 3]
  if code == 'R' then replies[n] = release(first, last, owner, third)
  elseif code == 'A' then replies[n] = acquire(n, first, last, owner, third)
  elseif code == 'W' then
    replies[n] = acquire(n, first, last, owner, third, tonumber(ARGV[i + 4]), ARGV[i + 5])
  else replies[n] = touch(n, first, last, owner) end
end)
walk(function(n, code, first, last, i) write(n, code, first, last, ARGV[i + 3]) end)
bury()
if queued then tell_heads() end
return replies
