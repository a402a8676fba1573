-- Deletes the lock keys that still belong to the owner. Gated by nothing: giving back is always
-- safe, also on a node that may not vote.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] the value as it should stand there, or only the owner
-- Returns: "R deleted total"
local locks, deleted = #KEYS / 2, 0
local values = redis.call('MGET', unpack(KEYS))
local queued = false
local whole, owner = ARGV[1], nil
for i = 1, locks do
  local value = values[i]
  local mine = value == whole
  if value and not mine then
    -- A fence that differs is no reason to keep it.
    owner = owner or string.match(whole, '^(.*)|%d+$') or whole
    mine = value == owner or string.find(value, owner .. '|', 1, true) == 1
  end
  if mine then
    deleted = deleted + redis.call('DEL', KEYS[i])
    values[i] = false
  end
  queued = queued or values[locks + i]
end
if queued then
  local time
  -- @include tell
  -- @include queue
  local view = {}
  for i = 1, locks do
    view[KEYS[i]] = values[i]
    queue_of(KEYS[locks + i], KEYS[i], values[locks + i])
  end
  write_queues(function(lock) return not view[lock] end)
end
return 'R ' .. deleted .. ' ' .. locks
