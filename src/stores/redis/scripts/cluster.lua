-- Runs acquires, touches and releases of one slot, as if they had been sent one after the other;
-- each gets a line of the reply. In a Cluster a script cannot reach the node record in another
-- slot, so each lock has its own counter key. A counter expires after its retention.
-- KEYS: the lock keys of all operations, then their counters (not of releases), then their queues
--       (not of touches), in the same order
-- ARGV: [1] number of lock keys, [2] number of counters, [3] retention of the counters in ms,
--       [4..] operations, as _list.lua has them
-- Returns: "S sec usec -", and a line with the verdict on each operation, as _engine.lua has them
local call, locks, retention, time = redis.call, tonumber(ARGV[1]), ARGV[3], redis.call('TIME')
local stamp = 'S ' .. time[1] .. ' ' .. time[2] .. ' -'

-- Fast path for one operation on one lock: an acquire of a free lock with a proposal greater than
-- all fences before, or a touch of a lock that has the value that the sender expects.
if ARGV[1] == '1' and (ARGV[4] == 'A 1 1' or ARGV[4] == 'T 1 1') then
  local whole, ttl, c = ARGV[6], tonumber(ARGV[5]), tonumber(call('GET', KEYS[2]) or 0)
  if ARGV[4] == 'T 1 1' then
    local t = tonumber(string.match(whole, '%d+$'))
    if call('MGET', KEYS[1])[1] == whole and c == t then
      call('PEXPIRE', KEYS[2], retention)
      if ttl > 0 and call('PTTL', KEYS[1]) < ttl then call('PEXPIRE', KEYS[1], ttl) end
      return stamp .. '\nK'
    end
  elseif call('EXISTS', KEYS[1], KEYS[3]) == 0 then
    local fence = tonumber(ARGV[7])
    if fence > c and fence <= (time[1] + 60) * 1000000 and fence <= 9007199254740991 then
      -- The counter is written before the key: an error between the two then only skips a fence.
      call('SET', KEYS[2], ARGV[7], 'PX', retention)
      call('SET', KEYS[1], whole .. '|' .. ARGV[7], 'PX', ttl)
      return stamp .. '\nG'
    end
  end
end
-- @include engine
-- @include run-at
-- @include list
-- @include queue
local first_queue = locks + tonumber(ARGV[2]) + 1
local ops, has_waiter = read_operations(4, 1, first_queue, locks + 1)
local has_queues = KEYS[first_queue] and call('EXISTS', unpack(KEYS, first_queue)) > 0
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local view = {
  values = by_name(call('MGET', unpack(KEYS, 1, locks)), 1), fences = true, floor = 0,
  ttl_max = math.huge, queues = (has_queues or has_waiter) and open_queues(now, true),
  -- Limit for proposals: a minute (in µs) ahead of this server's time.
  proposal_max = (time[1] + 60) * 1000000
}

function view.read_counter(op, n)
  return tonumber(call('GET', KEYS[op.counter + n]) or 0)
end

-- Writes the counters even if none of them is smaller: each touch prolongs their retention.
function view.raise_counters(op, fence)
  for n = 0, op.last - op.first do
    local c = math.max(view.read_counter(op, n), fence)
    call('SET', KEYS[op.counter + n], string.format('%.0f', c), 'PX', retention)
  end
end
return run_all(ops, view, stamp)
