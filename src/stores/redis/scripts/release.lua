-- Deletes the lock keys that still belong to the owner. Gated by nothing: giving back is always
-- safe, also on a node that may not vote.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] the value as it should stand there, or only the owner
-- Returns: "R deleted total"
-- Most are one lock that stands as it was left, and nobody waits for it.
local call = redis.call
if #KEYS == 2 and call('EXISTS', KEYS[2]) == 0 and call('MGET', KEYS[1])[1] == ARGV[1] then
  return call('DEL', KEYS[1]) == 1 and 'R 1 1' or 'R 0 1'
end
local locks, deleted = #KEYS / 2, 0
local values = call('MGET', unpack(KEYS, 1, locks))
-- @include belongs
for i = 1, locks do
  if belongs(values[i], ARGV[1]) then
    deleted = deleted + call('DEL', KEYS[i])
    values[i] = false
  end
end
if call('EXISTS', unpack(KEYS, locks + 1)) > 0 then
  local time
  -- @include tell
  -- @include queue
  local view = {}
  for i = 1, locks do
    view[KEYS[i]] = values[i]
    queue_of(KEYS[locks + i], KEYS[i])
  end
  notify_heads(function(lock) return not view[lock] end)
end
return 'R ' .. deleted .. ' ' .. locks
