-- Returns the values of those keys that may be locks of Holdfast. Other values are not sent: they
-- may be megabytes long.
-- KEYS: any keys
-- ARGV: none
-- Returns: for each key its value, or an empty text
local values = redis.call('MGET', unpack(KEYS))
for i = 1, #KEYS do
  local value = values[i]
  if not value or #value > 2048 or not string.find(value, '^hf:') then values[i] = '' end
end
return values
