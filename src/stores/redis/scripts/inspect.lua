-- Looks at one lock and changes nothing.
-- KEYS: [1] lock key, [2] its queue
-- ARGV: none
-- Returns: "F waiters"              free
--          "I waiters pttl value"   held
local value, text = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
local waiters = 0
if text then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  for lapse in string.gmatch(text, ':(%d+)[:=]') do
    if tonumber(lapse) > now then waiters = waiters + 1 end
  end
end
if not value then return 'F ' .. waiters end
return table.concat({'I', waiters, redis.call('PTTL', KEYS[1]), value}, ' ')
