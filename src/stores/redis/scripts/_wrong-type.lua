-- Part of the scripts that look at lock keys. Returns the refusal for a key that holds no text,
-- such as a hash of another library. Its type is "-" if this user may not run TYPE.
local function wrong_type(key)
  return 'X WRONGTYPE ' .. (redis.pcall('TYPE', key).ok or '-') .. ' ' .. key
end
