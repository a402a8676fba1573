-- Runs acquires, touches and releases, as if they had been sent one after the other; each gets a
-- line of the reply. Fences come from the counters in the node record.
-- KEYS: [1] node record, then the lock keys of all operations, then their queues, in the same
--       order (touches need none)
-- ARGV: [1] verify (1 or 0), [2] admission (strict or off), [3] format, [4] maxTtl ms, [5] number
--       of lock keys, [6..] operations, as _list.lua has them
-- Returns: "S sec usec rid", and a line with the verdict on each operation, as _engine.lua has them

-- Fast path for one operation on one lock: most locks are in the state that the sender expects. It
-- reads first and writes last. In any other case it has written nothing, and the rest of the script
-- decides.
local kind = ARGV[6]
if ARGV[5] == '1' and (kind == 'A 1 1' or kind == 'T 1 1' or kind == 'W 1 1') then
  local call, strict, whole = redis.call, ARGV[2] == 'strict', ARGV[8]
  local kept = call('HMGET', KEYS[1], 'rid', 'st', 'fmt', 'max', 'floor', ARGV[10] or ARGV[9])
  local rid, ttl, time, line = kept[1], tonumber(ARGV[7]), call('TIME'), nil
  if rid and kept[3] == ARGV[3]
    and (strict and kept[2] == 'A' and ttl <= tonumber(kept[4] or ARGV[4])
      -- The other allowed case: the client has admission off, and the node record is not strict.
      or not (strict or kept[2] or kept[4]))
  then
    if kind == 'T 1 1' then
      line = call('MGET', KEYS[2])[1] == whole and 'K'
    -- EXISTS finds keys of every type, even a key that holds no lock.
    elseif kind == 'A 1 1' and call('EXISTS', KEYS[2], KEYS[3]) == 0 then
      local c = tonumber(ARGV[9])
      -- A proposal far ahead of this server's time is left to the rest of the script, which reduces
      -- it.
      line = c > tonumber(kept[5] or 0) and c > tonumber(kept[6] or 0)
        and c <= (time[1] + 60) * 1000000 and c <= 9007199254740991 and 'G'
    else
      -- @include held
      line = held_line(KEYS[2], whole, KEYS[3], time, 11)
    end
  end
  local info = line and ARGV[1] == '1' and redis.pcall('INFO', 'server')
  if line
    and (not info or type(info) == 'string' and string.find(info, 'run_id:' .. rid, 1, true))
  then
    if line == 'G' then
      -- The counter is written before the key: an error between the two then only skips a fence.
      call('HSET', KEYS[1], ARGV[10], ARGV[9])
      call('SET', KEYS[2], whole .. '|' .. ARGV[9], 'PX', ARGV[7])
    elseif line == 'K' and ttl > 0 and call('PTTL', KEYS[2]) < ttl then
      call('PEXPIRE', KEYS[2], ttl)
    end
    local by = strict and string.sub(rid, 1, 12) or '-'
    return 'S ' .. time[1] .. ' ' .. time[2] .. ' ' .. by .. '\n' .. line
  end
end
-- @include record
local call, record, locks = redis.call, KEYS[1], tonumber(ARGV[5])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Reads the record together with the counters that the acquires need, each counter once.
-- @include run-at
local fields, counters, at = {'HMGET', record, 'rid', 'st', 'fmt', 'max', 'floor'}, {}, 6
while at <= #ARGV do
  local code, count, each = run_at(at)
  local size = code == 'R' and 1 or code == 'P' and 2 or code == 'T' and 1 + each or 2 + each
  if code == 'W' then size = size + 3 end
  if code == 'A' or code == 'W' then
    for first = at + 4, at + 4 + (count - 1) * size, size do
      for place = first, first + each - 1 do
        local shard = ARGV[place]
        if not counters[shard] then counters[shard], fields[#fields + 1] = 0, shard end
      end
    end
  end
  at = at + 2 + count * size
end
local kept = call(unpack(fields))
local refusal, rid = may_vote(kept[1], kept[2], kept[3], kept[4], now)
for n = 6, #kept do counters[fields[n + 2]] = tonumber(kept[n] or 0) end
local limits = {
  counters = counters, floor = tonumber(kept[5] or 0),
  -- Limit for proposals: a minute (in µs) ahead of this server's time.
  proposal_max = (time[1] + 60) * 1000000,
  ttl_max = tonumber(kept[4] or ARGV[2] == 'strict' and ARGV[4] or math.huge)
}
local stamp = 'S ' .. time[1] .. ' ' .. time[2] .. ' ' .. rid
local found = call('MGET', unpack(KEYS, 2, locks + 1))
local has_queues = KEYS[locks + 2] and call('EXISTS', unpack(KEYS, locks + 2)) > 0
-- @include usual
if not refusal and not has_queues then
  local lines = usual(6, 2, found, limits)
  if lines then return stamp .. '\n' .. table.concat(lines, '\n') end
end
-- @include engine
-- @include list
-- @include queue
local ops, has_waiter = read_operations(6, 2, locks + 2, 0)
local view = {
  values = by_name(found, 2), fences = true, refusal = refusal, ttl_max = limits.ttl_max,
  floor = limits.floor, proposal_max = limits.proposal_max,
  queues = (has_queues or has_waiter) and open_queues(now, false)
}

function view.read_counter(op, n)
  local shard = ARGV[op.counter + n]
  counters[shard] = counters[shard] or tonumber(call('HGET', record, shard) or 0)
  return counters[shard]
end

function view.raise_counters(op, fence, text, is_behind)
  local count = {'HSET', record}
  for n = 0, is_behind and op.last - op.first or -1 do
    if view.read_counter(op, n) < fence then
      count[#count + 1], count[#count + 2] = ARGV[op.counter + n], text
      counters[ARGV[op.counter + n]] = fence
    end
  end
  if #count > 2 then call(unpack(count)) end
end
return run_all(ops, view, stamp)
