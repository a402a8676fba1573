-- Part of the scripts that run operations. A run is a part of the arguments: operations of one
-- kind. Returns what they share: their code, their number, and the number of lock keys of each.
local function run_at(at)
  local code, count, locks = string.match(ARGV[at], '^(%u) (%d+) (%d+)$')
  return code, tonumber(count), tonumber(locks)
end
