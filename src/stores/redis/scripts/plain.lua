-- Runs acquires, touches and releases without fences and without a node record, as if they had
-- been sent one after the other; each gets a line of the reply. Also in a Cluster, for locks of
-- one slot.
-- KEYS: the lock keys of all operations, then their queues, in the same order (touches need none)
-- ARGV: [1] number of lock keys, [2] "cluster" if channels are to be in the slot of their lock, or
--       "", [3..] operations, as _list.lua has them
-- Returns: "S sec usec -", or "-" if the first operation is a release, and a line with the verdict
--       on each operation, as _engine.lua has them. Clients of all modes send releases to this
--       script. Some of them would take a stamp without a run id for that of another process

-- Fast path for one operation on one lock that is in the state that the sender expects.
if #KEYS == 2 then
  local call, kind, whole = redis.call, ARGV[3], ARGV[5]
  if kind == 'R 1 1' then
    if call('EXISTS', KEYS[2]) == 0 and call('MGET', KEYS[1])[1] == whole then
      return call('DEL', KEYS[1]) == 1 and '-\nR 1 1' or '-\nR 0 1'
    end
  elseif kind == 'W 1 1' then
    local time = call('TIME')
    -- @include held
    local line = held_line(KEYS[1], whole, KEYS[2], time, 6)
    if line then return 'S ' .. time[1] .. ' ' .. time[2] .. ' -\n' .. line end
  end
end
local call, locks, time = redis.call, tonumber(ARGV[1]), redis.call('TIME')
local has_stamp = string.find(ARGV[3], '^[AWT]')
local stamp = has_stamp and 'S ' .. time[1] .. ' ' .. time[2] .. ' -' or '-'
local found = call('MGET', unpack(KEYS, 1, locks))
local has_queues = KEYS[locks + 1] and call('EXISTS', unpack(KEYS, locks + 1)) > 0
-- @include usual
if not has_queues then
  local lines = usual(3, 1, found, nil)
  if lines then return stamp .. '\n' .. table.concat(lines, '\n') end
end
-- @include engine
-- @include run-at
-- @include list
-- @include queue
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ops, has_waiter = read_operations(3, 1, locks + 1, nil)
local view = {
  values = by_name(found, 1), fences = false, ttl_max = math.huge,
  queues = (has_queues or has_waiter) and open_queues(now, ARGV[2] == 'cluster')
}
return run_all(ops, view, stamp)
