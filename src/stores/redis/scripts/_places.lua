-- Part of the scripts that run several operations, for calls with waiters: places in the queues.
-- Fills in `first_of_others`, `wait_in_queues`, `claim_places`, `leave_queues` and `tell_heads`.
-- @include tell
-- @include queue

local function queue_at(k)
  return queue_of(queue_names[k], KEYS[k])
end

-- Returns for how long the head keeps us from a free lock, if another waiter comes first.
first_of_others = function(first, last, ticket, id)
  for k = first, last do
    local head = head_before(queue_at(k), ticket, id)
    if head then return time_left(head) end
  end
end

-- Refused: a waiter takes a place in the queues that keep it waiting, and leaves the rest. Returns
-- the fewest that stand in front of it.
wait_in_queues = function(first, last, ticket, id)
  if not ticket then return '-' end
  local rank = math.huge
  for k = first, last do
    local queue = queue_at(k)
    if view[KEYS[k]] or head_before(queue, ticket, id) then
      rank = math.min(rank, stand(queue, ticket, id))
    else
      leave(queue, id)
    end
  end
  return string.format('%.0f', rank)
end

claim_places = function(first, last, ticket, id)
  if not ticket then return end
  for k = first, last do claimed(queue_at(k), id) end
end

-- "-id" gives up a place, "=id" keeps one after a vote that was not enough.
leave_queues = function(first, last, place)
  local how, id = string.sub(place, 1, 1), string.sub(place, 2)
  for k = first, last do
    local queue = queue_at(k)
    if how == '-' then leave(queue, id) end
    if how == '=' then queue.keeper = id end
  end
end

tell_heads = function()
  notify_heads(function(lock) return not view[lock] end)
end
