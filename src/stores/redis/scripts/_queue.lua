-- Part of the scripts that grant or free a lock: who waits for it, and whose turn it is. Needs
-- `time` (the server's, or nil), `publish(queue name, base, message)` and
-- `listeners(queue name, base)` before it.
--
-- A queue is one text, "ticket:lapse:id ticket:lapse=id ...", the smallest ticket first, in a key
-- that expires with its last place. A ticket is the waiter's first proposal, so that all nodes that
-- know the same waiters agree on who is next. An id is "base-wN": N is told on the base's channel.
-- "=" stands before the id of a waiter whose manager was listening when it took the place.
local place_ms, claim_ms, places_max = 3000, 150, 1000
local queues = {}

local function now_ms()
  time = time or redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The queue in `text`, without places that have lapsed; the same one whenever it is asked for.
local function queue_of(name, lock, text)
  local queue = queues[name]
  if queue then return queue end
  queue = {name = name, lock = lock}
  queues[#queues + 1], queues[name] = queue, queue
  if text then
    for ticket, lapse, mark, id in string.gmatch(text, '(%d+):(%d+)([:=])(%S+)') do
      if tonumber(lapse) > now_ms() then
        local place = {ticket = tonumber(ticket), lapse = tonumber(lapse), id = id, mark = mark}
        queue[#queue + 1] = place
      else
        queue.changed = true
      end
    end
  end
  return queue
end

local function is_before(place, ticket, id)
  return place.ticket < ticket or (place.ticket == ticket and place.id < id)
end

-- Without a ticket everybody who waits comes first.
local function turn_of_another(queue, ticket, id)
  local head = queue[1]
  return head and (not ticket or is_before(head, ticket, id))
end

local function leave(queue, id)
  for n = 1, #queue do
    if queue[n].id == id then
      table.remove(queue, n)
      queue.changed = true
      return
    end
  end
end

local function base_and_number(id)
  return string.match(id, '^(.*)%-w(%w+)$')
end

local function stand(queue, ticket, id)
  leave(queue, id)
  if #queue >= places_max then return end
  local base = base_and_number(id)
  local mark = base and listeners(queue.name, base) > 0 and '=' or ':'
  local at = #queue + 1
  while at > 1 and not is_before(queue[at - 1], ticket, id) do at = at - 1 end
  table.insert(queue, at, {ticket = ticket, lapse = now_ms() + place_ms, id = id, mark = mark})
  queue.changed = true
end

-- Only ever sooner: told again and again, a dead waiter would otherwise stay the head for good.
local function lapse_soon(queue, place)
  local lapse = now_ms() + claim_ms
  if place.lapse > lapse then place.lapse, queue.changed = lapse, true end
end

-- How long the first one has to come: it is told that the lock is free, if it was not before.
local function time_left(first)
  return string.format('%.0f', math.min(first.lapse - now_ms(), claim_ms))
end

-- Granted: the place stays, for this may be one vote of too few, but only for a moment.
local function claimed(queue, id)
  for n = 1, #queue do
    if queue[n].id == id then lapse_soon(queue, queue[n]) end
  end
end

local function write_queue(queue)
  if #queue == 0 then
    redis.call('DEL', queue.name)
    return
  end
  local places, last = {}, 0
  for n = 1, #queue do
    local place = queue[n]
    places[n] = string.format('%.0f:%.0f%s%s', place.ticket, place.lapse, place.mark, place.id)
    last = math.max(last, place.lapse)
  end
  redis.call('SET', queue.name, table.concat(places, ' '), 'PX', last - now_ms())
end

-- Tells the head of a queue, and only that one. Where its manager was listening and now nobody
-- hears, it is gone, and the next one is the head. If only its connection is gone, it takes its
-- place again when it asks, with a mark that says not to rely on its hearing.
local function tell_head(queue)
  local head = queue[1]
  while head and head.id ~= queue.keeper do
    local base, number = base_and_number(head.id)
    local heard = base and publish(queue.name, base, number)
    if heard ~= 0 or head.mark ~= '=' then return lapse_soon(queue, head) end
    table.remove(queue, 1)
    queue.changed = true
    head = queue[1]
  end
end

-- Whoever leaves a lock free tells who is next.
local function write_queues(is_free)
  for n = 1, #queues do
    local queue = queues[n]
    if queue[1] and is_free(queue.lock) then tell_head(queue) end
    if queue.changed then write_queue(queue) end
  end
end
