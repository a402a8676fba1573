-- Part of the scripts that report the holder of a lock. Returns the whole value if Holdfast wrote
-- it. Of a value of another library, returns the beginning in printable ASCII: the value may be
-- megabytes long, and may be written to a log.
local function shown(value)
  if #value <= 2048 and string.find(value, '^hf:[!-~]+$') then return value end
  if #value <= 128 and not string.find(value, '[^ -~]') then return value end
  local beginning = string.gsub(string.sub(value, 1, 128), '[^ -~]', '?')
  return #value > 128 and beginning .. '...' or beginning
end
