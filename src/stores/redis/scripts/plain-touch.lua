-- Extends a held lock without a fence, or (with ttl 0) proves it. Never creates a key, never
-- shortens a life.
-- KEYS: [1..] lock keys
-- ARGV: [1] owner, [2] ttl ms or 0
-- Returns: "K"       done, on every key
--          "N WHY"   not ours any more: ABSENT or OTHER
local ttl = tonumber(ARGV[2])
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i])
  if not value then return 'N ABSENT' end
  if value ~= ARGV[1] then return 'N OTHER' end
end
if ttl > 0 then
  for i = 1, #KEYS do
    if redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
  end
end
return 'K'
