-- Deletes a value that another library wrote, if it is still the one that inspect returned.
-- KEYS: [1] lock key
-- ARGV: [1] the value as inspect returned it
-- Returns: "R deleted 1"
-- @include exactly
-- MGET returns nothing for a key of another type, where GET fails.
local value = redis.call('MGET', KEYS[1])[1]
if not value or exactly(value) ~= ARGV[1] then return 'R 0 1' end
return 'R ' .. redis.call('DEL', KEYS[1]) .. ' 1'
