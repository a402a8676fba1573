-- Grants all lock keys of one slot to one owner, or none. In a Cluster a script cannot reach the
-- node record in another slot, so each lock has its own counter beside it, with a retention.
-- KEYS: [1..n] lock keys, [n+1..2n] their counters
-- ARGV: [1] owner, [2] ttl ms, [3] proposal, [4] retention of the counters in ms
-- Returns: "G sec usec - fence"        granted, or found granted to this owner before
--          "H sec usec - pttl value"   held by another
--          "X CODE detail"             refused, waiting does not help
local n = #KEYS / 2
local time = redis.call('TIME')
local at = time[1] .. ' ' .. time[2]
local mine, fence = 0, nil
for i = 1, n do
  local value = redis.call('GET', KEYS[i])
  if value then
    local holder, c = string.match(value, '^(.*)|(%d+)$')
    if holder ~= ARGV[1] then
      return table.concat({'H', at, '-', redis.call('PTTL', KEYS[i]), value}, ' ')
    end
    mine, fence = mine + 1, c
  end
end
if mine == n then return table.concat({'G', at, '-', fence}, ' ') end
if mine > 0 then return 'X PARTIAL ' .. mine end
local c = tonumber(ARGV[3])
for i = n + 1, 2 * n do c = math.max(c, tonumber(redis.call('GET', KEYS[i]) or 0) + 1) end
if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
fence = string.format('%.0f', c)
for i = n + 1, 2 * n do redis.call('SET', KEYS[i], fence, 'PX', ARGV[4]) end
for i = 1, n do redis.call('SET', KEYS[i], ARGV[1] .. '|' .. fence, 'PX', ARGV[2]) end
return table.concat({'G', at, '-', fence}, ' ')
