-- Grants all lock keys to one owner, or none, without a fence and without a node record.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] owner, [2] ttl ms
-- Returns: "G"                           granted, or found granted to this owner before
--          "H sec usec - pttl - value"   held by another
--          "Q sec usec - left -"         free, but others wait; the first has so many ms to come
--          "X CODE detail"               refused, waiting does not help
-- @include shown
-- @include wrong-type
local mine, locks = 0, #KEYS / 2
local values = redis.call('MGET', unpack(KEYS, 1, locks))
for i = 1, locks do
  local value = values[i]
  if value == ARGV[1] then
    mine = mine + 1
  elseif value then
    local time = redis.call('TIME')
    local pttl = redis.call('PTTL', KEYS[i])
    return table.concat({'H', time[1], time[2], '-', pttl, '-', shown(value)}, ' ')
  end
end
if mine == locks then return 'G' end
if mine > 0 then return 'X PARTIAL ' .. mine end
if redis.call('EXISTS', unpack(KEYS, locks + 1)) > 0 then
  local time = redis.call('TIME')
  -- @include tell
  -- @include queue
  local first
  for n = 1, locks do first = first or head_of(queue_of(KEYS[locks + n], KEYS[n])) end
  local left = first and time_left(first)
  notify_heads(function() return true end)
  if left then return table.concat({'Q', time[1], time[2], '-', left, '-'}, ' ') end
end
for i = 1, locks do
  -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
  if not redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2], 'NX') then
    for undo = 1, i - 1 do redis.call('DEL', KEYS[undo]) end
    return wrong_type(KEYS[i])
  end
end
return 'G'
