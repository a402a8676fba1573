-- Looks at one lock and changes nothing.
-- KEYS: [1] lock key
-- ARGV: none
-- Returns: "F"              free
--          "I pttl value"   held
local value = redis.call('GET', KEYS[1])
if not value then return 'F' end
return 'I ' .. redis.call('PTTL', KEYS[1]) .. ' ' .. value
