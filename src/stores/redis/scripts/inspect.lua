-- Reads one lock and changes nothing.
-- KEYS: [1] lock key, [2] its queue
-- ARGV: none
-- Returns: "F waiters"              free
--          "I waiters pttl value"   held
--          "X WRONGTYPE type key"   held by something that is no lock
-- @include exactly
-- @include wrong-type
-- MGET returns nothing for a key of another type, where GET fails.
local value, waiters = redis.call('MGET', KEYS[1])[1], 0
if redis.call('EXISTS', KEYS[2]) == 1 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  -- Each queue entry has a member with a score of about -2 times its expiry (see _queue.lua).
  -- Entries that have not expired are counted.
  waiters = redis.call('ZCOUNT', KEYS[2], '-inf', string.format('(-%.0f', 2 * now + 1))
end
if not value then
  if redis.call('EXISTS', KEYS[1]) == 1 then return wrong_type(KEYS[1]) end
  return 'F ' .. waiters
end
return table.concat({'I', waiters, redis.call('PTTL', KEYS[1]), exactly(value)}, ' ')
