-- Grants all lock keys to one owner, or none, without a fence and without a node record.
-- KEYS: [1..] lock keys
-- ARGV: [1] owner, [2] ttl ms
-- Returns: "G"              granted, or found granted to this owner before
--          "H pttl value"   held by another
--          "X CODE detail"  refused, waiting does not help
local mine = 0
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i])
  if value == ARGV[1] then
    mine = mine + 1
  elseif value then
    return 'H ' .. redis.call('PTTL', KEYS[i]) .. ' ' .. value
  end
end
if mine == #KEYS then return 'G' end
if mine > 0 then return 'X PARTIAL ' .. mine end
for i = 1, #KEYS do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
return 'G'
