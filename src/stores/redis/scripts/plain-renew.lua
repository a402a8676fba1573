-- Extends many locks of one key each, without fences. Never creates a key, never shortens a life.
-- KEYS: [1..] lock keys
-- ARGV: [1] ttl ms, [2..] the owner of each lock key
-- Returns: "V verdicts", a letter for each: K done, N not ours any more
local ttl, verdicts = tonumber(ARGV[1]), {}
local values = redis.call('MGET', unpack(KEYS))
for n = 1, #values do
  if values[n] == ARGV[n + 1] then
    if redis.call('PTTL', KEYS[n]) < ttl then redis.call('PEXPIRE', KEYS[n], ttl) end
    verdicts[n] = 'K'
  else
    verdicts[n] = 'N'
  end
end
return 'V ' .. table.concat(verdicts)
