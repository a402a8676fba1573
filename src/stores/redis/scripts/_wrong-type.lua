-- Part of the scripts that look at lock keys. Returns the refusal for a key that holds no text,
-- such as a hash of another library. The type is "-" if this user may not run TYPE. Control
-- characters in the key are replaced: a line break would end the line of this verdict in the reply.
local function wrong_type(key)
  local name = string.gsub(key, '%c', '?')
  return 'X WRONGTYPE ' .. (redis.pcall('TYPE', key).ok or '-') .. ' ' .. name
end
