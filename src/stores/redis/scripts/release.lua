-- Deletes the lock keys that still belong to the owner. Gated by nothing: giving back is always
-- safe, also on a node that may not vote.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] the value as it should stand there, or only the owner
-- Returns: "R deleted total"
-- Most are one lock that stands as it was left, and nobody waits for it.
if #KEYS == 2 then
  local found = redis.call('MGET', KEYS[1], KEYS[2])
  if found[1] == ARGV[1] and not found[2] then
    return redis.call('DEL', KEYS[1]) == 1 and 'R 1 1' or 'R 0 1'
  end
end
local locks, deleted = #KEYS / 2, 0
local values = redis.call('MGET', unpack(KEYS))
local queued = false
-- @include belongs
for i = 1, locks do
  if belongs(values[i], ARGV[1]) then
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
