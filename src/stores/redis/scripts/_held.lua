-- Part of the short ways: the refusal of one acquire that changes nothing, which most are if
-- another has the lock.
-- @include shown

-- Returns the verdict if another owner has the lock, and if the waiter, whose ticket and id are at
-- ARGV[at] if there is one, has an entry that need not be written: with this ticket, with more than
-- half of its life left, and in a queue of which no entry has expired. Otherwise nil.
local function held_line(key, owner, queue, time, at)
  local call, ticket, rank = redis.call, ARGV[at], '-'
  local value = call('MGET', key)[1]
  if not value or string.sub(value, 1, #owner) == owner then return nil end
  if ticket then
    local id, now = ARGV[at + 1], time[1] * 1000 + math.floor(time[2] / 1000)
    local ends = call('ZSCORE', queue, '~' .. id)
    if not ends or tonumber(ends) > -2 * (now + 7501) then return nil end
    if tonumber(call('ZSCORE', queue, id)) ~= tonumber(ticket) then return nil end
    if call('ZCOUNT', queue, string.format('-%.0f', 2 * now + 1), '(0') > 0 then return nil end
    rank = call('ZCOUNT', queue, 0, '(' .. ticket)
  end
  return 'H ' .. call('PTTL', key) .. ' ' .. rank .. ' ' .. shown(value)
end
