-- Part of the scripts that release: whether a lock's value is what should stand there (`whole`), or
-- at least its owner's: a fence that differs is no reason to keep it.
local function belongs(value, whole)
  if not value or value == whole then return value end
  local owner = string.match(whole, '^(.*)|%d+$') or whole
  return value == owner or string.find(value, owner .. '|', 1, true) == 1
end
