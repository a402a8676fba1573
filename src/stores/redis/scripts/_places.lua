-- Part of the scripts that run several operations, for when somebody waits: places in the queues.
-- Fills in `first_of_others`, `wait_in_queues`, `claim_places` and `leave_queues`.
-- @include tell
-- @include queue

-- The queue of a lock key; nil where nobody waits, unless one is to be begun.
local function queue_at(k, begin)
  local name = queue_names[k]
  if begin or view[name] or queues[name] then return queue_of(name, KEYS[k], view[name]) end
end

-- How long the first of those has who come before, where a free lock is not for us.
first_of_others = function(first, last, ticket, id)
  for k = first, last do
    local queue = queue_at(k, false)
    if queue and turn_of_another(queue, ticket, id) then
      return time_left(queue[1])
    end
  end
end

-- Refused: whoever wants to wait takes a place in the queues that keep it waiting, and stands in
-- nobody's way in the rest.
wait_in_queues = function(first, last, ticket, id)
  if not ticket then return end
  for k = first, last do
    local value = view[KEYS[k]]
    local queue = queue_at(k, value)
    if value or (queue and turn_of_another(queue, ticket, id)) then
      stand(queue, ticket, id)
    elseif queue then
      leave(queue, id)
    end
  end
end

claim_places = function(first, last, ticket, id)
  if not ticket then return end
  for k = first, last do
    local queue = queue_at(k, false)
    if queue then claimed(queue, id) end
  end
end

-- "-id" gives up a place, "=id" keeps one after a vote that was not enough.
leave_queues = function(first, last, place)
  local how, id = string.sub(place, 1, 1), string.sub(place, 2)
  for k = first, last do
    local queue = queue_at(k, false)
    if queue and how == '-' then leave(queue, id) end
    if queue and how == '=' then queue.keeper = id end
  end
end

tell_heads = function()
  write_queues(function(lock) return not view[lock] end)
end
