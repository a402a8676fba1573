-- Grants all lock keys to one owner, or none, without a fence and without a node record.
-- KEYS: [1..n] lock keys, [n+1..] their queues
-- ARGV: [1] owner, [2] ttl ms
-- Returns: "G"              granted, or found granted to this owner before
--          "H pttl value"   held by another
--          "Q left"         free, but others wait; the first has so many ms to come
--          "X CODE detail"  refused, waiting does not help
local mine, locks = 0, #KEYS / 2
for i = 1, locks do
  local value = redis.call('GET', KEYS[i])
  if value == ARGV[1] then
    mine = mine + 1
  elseif value then
    return 'H ' .. redis.call('PTTL', KEYS[i]) .. ' ' .. value
  end
end
if mine == locks then return 'G' end
if mine > 0 then return 'X PARTIAL ' .. mine end
local texts = redis.call('MGET', unpack(KEYS, locks + 1))
for i = 1, locks do
  if texts[i] then
    local time
    -- @include tell
    -- @include queue
    local first
    for n = i, locks do
      if texts[n] and not first then
        first = queue_of(KEYS[locks + n], KEYS[n], texts[n])[1]
      end
    end
    write_queues(function() return true end)
    if first then return 'Q ' .. time_left(first) end
    break
  end
end
for i = 1, locks do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
return 'G'
