-- Grants all lock keys of one slot to one owner, or none. In a Cluster a script cannot reach the
-- node record in another slot, so each lock has its own counter beside it, with a retention.
-- KEYS: [1..n] lock keys, [n+1..2n] their counters, [2n+1..3n] their queues
-- ARGV: [1] owner, [2] ttl ms, [3] proposal, [4] retention of the counters in ms, and for who wants
--       a place in the queues: [5] ticket, [6] waiter id, [7] how many fences to reserve: the one
--       granted and those right below it
-- Returns: "G sec usec - fence"             granted, or found granted to this owner before
--          "H sec usec - pttl rank value"   held by another; rank is how many waiters come before
--                                           this one, "-" without a place
--          "Q sec usec - left rank"         free, but others wait; the first has so many ms to come
--          "X CODE detail"                  refused, waiting does not help
-- @include shown
-- @include wrong-type
local n = #KEYS / 3
local time = redis.call('TIME')
local at = time[1] .. ' ' .. time[2]
local values = redis.call('MGET', unpack(KEYS, 1, n))
local queued = #ARGV > 4 or redis.call('EXISTS', unpack(KEYS, 2 * n + 1)) > 0
local mine, fence, held, rank = 0, nil, nil, '-'
for i = 1, n do
  if values[i] then
    local holder, c = string.match(values[i], '^(.*)|(%d+)$')
    if holder == ARGV[1] then mine, fence = mine + 1, c else held = held or i end
  end
end
if mine == n then return table.concat({'G', at, '-', fence}, ' ') end
if mine > 0 and not held then return 'X PARTIAL ' .. mine end
if queued then
  -- @include tell-shard
  -- @include queue
  local ticket, id, left = tonumber(ARGV[5]), ARGV[6], nil
  local is_held, blocks = {}, {}
  for i = 1, n do
    local queue = queue_of(KEYS[2 * n + i], KEYS[i])
    local head = head_before(queue, ticket, id)
    is_held[KEYS[i]], blocks[i] = values[i], values[i] or head
    if head and not values[i] then left = left or time_left(head) end
  end
  local refused = held or left
  if ticket then
    for i = 1, n do
      if not refused then
        claimed(queues[i], id)
      elseif blocks[i] then
        rank = math.min(rank == '-' and math.huge or rank, stand(queues[i], ticket, id))
      else
        leave(queues[i], id)
      end
    end
  end
  if refused then
    notify_heads(function(lock) return not is_held[lock] end)
    if not held then return table.concat({'Q', at, '-', left, rank}, ' ') end
  end
end
if held then
  local pttl = redis.call('PTTL', KEYS[held])
  return table.concat({'H', at, '-', pttl, rank, shown(values[held])}, ' ')
end
-- No proposal lifts a counter further than a minute (µs) ahead of this server's time.
local c = math.min(tonumber(ARGV[3]), (time[1] + 60) * 1000000)
local block = tonumber(ARGV[7] or 1)
for i = n + 1, 2 * n do c = math.max(c, tonumber(redis.call('GET', KEYS[i]) or 0) + block) end
if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
fence = string.format('%.0f', c)
for i = n + 1, 2 * n do redis.call('SET', KEYS[i], fence, 'PX', ARGV[4]) end
for i = 1, n do
  -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
  if not redis.call('SET', KEYS[i], ARGV[1] .. '|' .. fence, 'PX', ARGV[2], 'NX') then
    for undo = 1, i - 1 do redis.call('DEL', KEYS[undo]) end
    return wrong_type(KEYS[i])
  end
end
return table.concat({'G', at, '-', fence}, ' ')
