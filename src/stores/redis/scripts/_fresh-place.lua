-- Part of the scripts that run several operations: the short way of a waiter that asks again.
-- Returns how many stand in front of it if its place needs no writing: it has this ticket and more
-- than half of its life, and no place of the queue has lapsed. The same rules as in `queue`.
local function rank_in(queue, id, ticket, now)
  local call = redis.call
  local ends = call('ZSCORE', queue, '~' .. id)
  if not ends or tonumber(ends) > -2 * (now + 7501) then return nil end
  if tonumber(call('ZSCORE', queue, id)) ~= tonumber(ticket) then return nil end
  if call('ZCOUNT', queue, string.format('-%.0f', 2 * now + 1), '(0') > 0 then return nil end
  return call('ZCOUNT', queue, 0, '(' .. ticket)
end
