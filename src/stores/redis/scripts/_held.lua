-- Part of the fast paths of scripts: the refusal of a single acquire that has nothing to write.
-- This is the usual case if another owner has the lock.
-- @include shown

-- Returns the verdict if another owner has the lock and no queue entry has to be written; otherwise
-- nil. A waiter has its ticket and its id at ARGV[at]. Its entry need not be written if it has this
-- ticket and more than half of its life left, and if no entry of the queue has expired.
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
