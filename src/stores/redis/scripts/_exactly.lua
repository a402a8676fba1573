-- Part of the scripts that inspect and break. Returns a text that identifies a value: the text from
-- `shown` and, if that is not the whole value, its length and its SHA-1.
-- @include shown
local function exactly(value)
  local text = shown(value)
  if text == value then return text end
  return text .. ' (' .. #value .. ' bytes, sha1 ' .. redis.sha1hex(value) .. ')'
end
