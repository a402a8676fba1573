-- Deletes the lock keys of one slot that still belong to the owner; as release, for a Cluster.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] owner, [2] "-id" to give up a place, "=id" to keep one after a vote that was not
--       enough, or nothing
-- Returns: "R deleted total"
local call = redis.call
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
  -- @include tell-shard
  -- @include queue
  local kind, id = string.sub(ARGV[2], 1, 1), string.sub(ARGV[2], 2)
  local view = {}
  for i = 1, locks do
    view[KEYS[i]] = values[i]
    local queue = queue_of(KEYS[locks + i], KEYS[i])
    if kind == '-' then leave(queue, id) elseif kind == '=' then queue.keeper = id end
  end
  notify_heads(function(lock) return not view[lock] end)
end
return 'R ' .. deleted .. ' ' .. locks
