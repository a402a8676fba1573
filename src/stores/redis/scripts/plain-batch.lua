-- Runs the acquires, touches and releases of one turn without fences, each with its own verdict,
-- as if they had been sent one after the other.
-- KEYS: [1..] for each operation its lock keys, then their queues (not for T)
-- ARGV: for each operation: A or T, number of lock keys, owner, ttl ms; W (an acquire with a place
--       in the queues), as A, then ticket and waiter id; or R, number of lock keys, owner, place to
--       give up or to keep
-- Returns: a list with one reply for each operation, as the scripts for one of them give it
local first_key, time = 1, nil
-- @include tell
-- @include queue
-- @include operations
local ops, i, key = {}, 1, 1
while i <= #ARGV do
  local op = {code = ARGV[i], first = key, last = key + ARGV[i + 1] - 1, owner = ARGV[i + 2]}
  i, key = i + 3, op.last + 1
  if op.code ~= 'T' then key = key + op.last - op.first + 1 end
  if op.code == 'R' then op.place = ARGV[i] else op.ttl = ARGV[i] end
  i = i + 1
  if op.code == 'W' then
    op.ticket, op.id = tonumber(ARGV[i]), ARGV[i + 1]
    i = i + 2
  end
  ops[#ops + 1] = op
end

local function acquire(op)
  local mine = 0
  for k = op.first, op.last do
    local value = view[KEYS[k]]
    if value == op.owner then
      mine = mine + 1
    elseif value then
      wait_in_queues(op)
      return 'H ' .. pttl_of(KEYS[k]) .. ' ' .. value
    end
  end
  if mine == op.last - op.first + 1 then return 'G' end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  local first = first_of_others(op)
  if first then
    wait_in_queues(op)
    -- It is about to be told that the lock is free, and has no more than that from then on.
    return 'Q ' .. string.format('%.0f', math.min(first.lapse - now_ms(), claim_ms))
  end
  claim_places(op)
  will_set(op, op.owner)
  return 'G'
end

local function touch(op)
  for k = op.first, op.last do
    local value = view[KEYS[k]]
    if not value then return 'N ABSENT' end
    if value ~= op.owner then return 'N OTHER' end
  end
  will_touch(op, nil, tonumber(op.ttl))
  return 'K'
end

for _, op in ipairs(ops) do
  if op.code == 'A' or op.code == 'W' then op.reply = acquire(op)
  elseif op.code == 'T' then op.reply = touch(op)
  else op.reply = release(op) end
end
return write_all(ops)
