-- Raises, extends or proves held locks of one slot; as touch, with a counter beside each lock.
-- KEYS: [1..n] lock keys, [n+1..2n] their counters
-- ARGV: [1] owner, [2] ttl ms or 0, [3] fence, [4] retention of the counters in ms
-- Returns: "K sec usec -"       done, on every key
--          "N sec usec - WHY"   not ours any more: ABSENT, OTHER, or NEWER
local n = #KEYS / 2
local ttl, t = tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local at = time[1] .. ' ' .. time[2]
local behind = false
for i = 1, n do
  local value = redis.call('GET', KEYS[i])
  if not value then return table.concat({'N', at, '-', 'ABSENT'}, ' ') end
  local holder, c = string.match(value, '^(.*)|(%d+)$')
  if holder ~= ARGV[1] then return table.concat({'N', at, '-', 'OTHER'}, ' ') end
  if tonumber(c) > t then return table.concat({'N', at, '-', 'NEWER'}, ' ') end
  if tonumber(c) < t then behind = true end
end
for i = n + 1, 2 * n do
  local c = tonumber(redis.call('GET', KEYS[i]) or 0)
  redis.call('SET', KEYS[i], string.format('%.0f', math.max(c, t)), 'PX', ARGV[4])
end
for i = 1, n do
  if behind then redis.call('SET', KEYS[i], ARGV[1] .. '|' .. ARGV[3], 'KEEPTTL') end
  if ttl > 0 and redis.call('PTTL', KEYS[i]) < ttl then redis.call('PEXPIRE', KEYS[i], ttl) end
end
return table.concat({'K', at, '-'}, ' ')
