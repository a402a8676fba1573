-- Part of the scripts that run operations. Returns what all operations of a run have in common:
-- code, how many, and the number of lock keys of each.
local function run_at(at)
  local code, count, locks = string.match(ARGV[at], '^(%u) (%d+) (%d+)$')
  return code, tonumber(count), tonumber(locks)
end
