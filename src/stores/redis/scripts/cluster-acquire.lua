-- Grants all lock keys of one slot to one owner, or none. In a Cluster a script cannot reach the
-- node record in another slot, so each lock has its own counter beside it, with a retention.
-- KEYS: [1..n] lock keys, [n+1..2n] their counters, [2n+1..3n] their queues
-- ARGV: [1] owner, [2] ttl ms, [3] proposal, [4] retention of the counters in ms, and for who wants
--       a place in the queues: [5] ticket, [6] waiter id, [7] how many fences to reserve: the one
--       granted and those right below it
-- Returns: "G sec usec - fence"        granted, or found granted to this owner before
--          "H sec usec - pttl value"   held by another
--          "Q sec usec - left"         free, but others wait; the first has so many ms to come
--          "X CODE detail"             refused, waiting does not help
local n = #KEYS / 3
local time = redis.call('TIME')
local at = time[1] .. ' ' .. time[2]
local values = redis.call('MGET', unpack(KEYS, 1, n))
local texts = redis.call('MGET', unpack(KEYS, 2 * n + 1))
local mine, fence, held, queued = 0, nil, nil, #ARGV > 4
for i = 1, n do
  queued = queued or texts[i]
  if values[i] then
    local holder, c = string.match(values[i], '^(.*)|(%d+)$')
    if holder == ARGV[1] then mine, fence = mine + 1, c else held = held or i end
  end
end
if mine == n then return table.concat({'G', at, '-', fence}, ' ') end
if mine > 0 and not held then return 'X PARTIAL ' .. mine end
local first
if queued then
  -- @include tell-shard
  -- @include queue
  local ticket, id = tonumber(ARGV[5]), ARGV[6]
  local is_held = {}
  local function blocks(i)
    local queue = queue_of(KEYS[2 * n + i], KEYS[i], texts[i])
    is_held[KEYS[i]] = values[i]
    return values[i] or turn_of_another(queue, ticket, id)
  end
  for i = 1, n do
    if blocks(i) and not values[i] then first = first or queues[i][1] end
  end
  if ticket then
    for i = 1, n do
      if not (held or first) then claimed(queues[i], id)
      elseif blocks(i) then stand(queues[i], ticket, id)
      else leave(queues[i], id) end
    end
  end
  write_queues(function(lock) return not is_held[lock] and (held or first) end)
  if first and not held then
    return table.concat({'Q', at, '-', time_left(first)}, ' ')
  end
end
if held then
  return table.concat({'H', at, '-', redis.call('PTTL', KEYS[held]), values[held]}, ' ')
end
local c, block = tonumber(ARGV[3]), tonumber(ARGV[7] or 1)
for i = n + 1, 2 * n do c = math.max(c, tonumber(redis.call('GET', KEYS[i]) or 0) + block) end
if c > 9007199254740991 then return 'X FENCE ' .. string.format('%.0f', c) end
fence = string.format('%.0f', c)
for i = n + 1, 2 * n do redis.call('SET', KEYS[i], fence, 'PX', ARGV[4]) end
for i = 1, n do
  -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
  if not redis.call('SET', KEYS[i], ARGV[1] .. '|' .. fence, 'PX', ARGV[2], 'NX') then
    for undo = 1, i - 1 do redis.call('DEL', KEYS[undo]) end
    return 'X WRONGTYPE'
  end
end
return table.concat({'G', at, '-', fence}, ' ')
