-- Part of the scripts that report who holds a lock. Returns a value of our own as it is, and of a
-- foreign one the beginning in printable ASCII: it may be megabytes long, and end up in a log.
local function shown(value)
  if #value <= 2048 and string.find(value, '^hf:[!-~]+$') then return value end
  if #value <= 128 and not string.find(value, '[^ -~]') then return value end
  local beginning = string.gsub(string.sub(value, 1, 128), '[^ -~]', '?')
  return #value > 128 and beginning .. '...' or beginning
end
