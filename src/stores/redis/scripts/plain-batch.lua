-- Runs the acquires, touches and releases of one turn without fences, each with its own verdict,
-- as if they had been sent one after the other.
-- KEYS: [1..] lock keys of all operations, in order
-- ARGV: for each operation: A or T, number of keys, owner, ttl ms; or R, number of keys, owner
-- Returns: a list with one reply for each operation, as the scripts for one of them give it
local first_key = 1
-- @include operations
local function acquire(n, first, last, owner, ttl)
  local mine = 0
  for k = first, last do
    local value = view[KEYS[k]]
    if value == owner then
      mine = mine + 1
    elseif value then
      return 'H ' .. pttl_of(KEYS[k], value) .. ' ' .. value
    end
  end
  if mine == last - first + 1 then return 'G' end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  will_set(n, first, last, owner, ttl)
  return 'G'
end

local function touch(n, first, last, owner)
  for k = first, last do
    local value = view[KEYS[k]]
    if not value then return 'N ABSENT' end
    if value ~= owner then return 'N OTHER' end
  end
  will_touch(n, first, last, nil)
  return 'K'
end

-- Twice the same walk: first the verdicts, then the writes.
local args = #ARGV
local function walk(visit)
  local i, n, key = 1, 0, 1
  while i <= args do
    local code, keys = ARGV[i], ARGV[i + 1]
    keys = keys == '1' and 1 or tonumber(keys)
    n = n + 1
    visit(n, code, key, key + keys - 1, ARGV[i + 2], ARGV[i + 3])
    i = i + (code == 'R' and 3 or 4)
    key = key + keys
  end
end

walk(function(n, code, first, last, owner, ttl)
  if code == 'R' then replies[n] = release(first, last, owner)
  elseif code == 'A' then replies[n] = acquire(n, first, last, owner, ttl)
  else replies[n] = touch(n, first, last, owner) end
end)
walk(function(n, code, first, last, _, ttl) write(n, code, first, last, ttl) end)
bury()
return replies
