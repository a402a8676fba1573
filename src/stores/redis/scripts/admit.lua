-- Admits a quarantined node: the node votes again, and its counters are not smaller than the given
-- ones. Idempotent. Refuses if the record has changed since the caller read it, or if the
-- quarantine is not over by this server's own clock.
-- KEYS: [1] node record
-- ARGV: [1] mode (copy, bootstrap or clock), [2] rid and [3] since as the caller read them,
--       [4] quarantine in ms, [5] floor for every fence, [6] the caller's time in µs as another
--       floor (at most a minute ahead of this server's time), or 0, [7..] shard, counter, ...
-- Returns: "A"          admitted, now or before
--          "L ms"       the quarantine lasts for so many ms more
--          "C"          the record has changed: read it again
--          "X CODE"     refused
local record = KEYS[1]
local kept = redis.call('HMGET', record, 'rid', 'st', 'since', 'ever', 'floor')
if kept[1] ~= ARGV[2] then return 'C' end
if kept[2] == 'A' then return 'A' end
if kept[3] ~= ARGV[3] then return 'C' end
local info = redis.pcall('INFO', 'server')
if type(info) ~= 'string' then return 'X NOINFO' end
if string.match(info, 'run_id:(%x+)') ~= kept[1] then return 'C' end
local time = redis.call('TIME')
local waited = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(kept[3])
if ARGV[1] == 'bootstrap' then
  if kept[4] then return 'C' end
  -- The uptime is a difference of two times cut to whole seconds. It may be almost a second too
  -- long.
  local uptime = tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or '1') - 1
  waited = math.max(waited, uptime * 1000)
end
local left = tonumber(ARGV[4]) - waited
if left > 0 then return 'L ' .. string.format('%.0f', left) end
local floor = math.max(tonumber(ARGV[5]), math.min(tonumber(ARGV[6]), (time[1] + 60) * 1000000))
if tonumber(kept[5] or 0) < floor then
  redis.call('HSET', record, 'floor', string.format('%.0f', floor))
end
for i = 7, #ARGV, 2 do
  local counter = redis.call('HGET', record, ARGV[i])
  if tonumber(counter or 0) < tonumber(ARGV[i + 1]) then
    redis.call('HSET', record, ARGV[i], ARGV[i + 1])
  end
end
redis.call('HSET', record, 'st', 'A', 'ever', '1', 'mode', ARGV[1])
return 'A'
