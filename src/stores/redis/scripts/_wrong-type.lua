-- Part of the scripts that look at lock keys. Returns the refusal for a key that holds no text,
-- such as a hash of another library. Its type is "-" if this user may not run TYPE. A reply has a
-- line for each verdict, so a name must not end one.
local function wrong_type(key)
  local name = string.gsub(key, '%c', '?')
  return 'X WRONGTYPE ' .. (redis.pcall('TYPE', key).ok or '-') .. ' ' .. name
end
