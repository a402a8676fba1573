-- Deletes the lock keys that still belong to the owner. Gated by nothing: giving back is always
-- safe, also on a node that may not vote.
-- KEYS: [1..] lock keys
-- ARGV: [1] owner
-- Returns: "R deleted total"
local deleted = 0
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i])
  if value and (value == ARGV[1] or string.sub(value, 1, #ARGV[1] + 1) == ARGV[1] .. '|') then
    deleted = deleted + redis.call('DEL', KEYS[i])
  end
end
return 'R ' .. deleted .. ' ' .. #KEYS
