-- Part of the scripts that grant or free a lock: who waits for it, and whose turn it is. Needs
-- `time` (the server's, or nil), `publish(queue name, base, message)` and
-- `listeners(queue name, base)` before it.
--
-- A queue is one sorted set with two members for each waiter:
--   id    its score is the ticket, 0 or more. The smallest ticket is the head; ids decide ties.
--   ~id   its score is -(2 * lapse + listened). `lapse` is the moment (ms) at which the place ends;
--         `listened` is 1 if the waiter's manager was subscribed when it took the place.
-- So the lapses come first and the waiters after them, in order. Every lookup is O(log N). The key
-- expires with the place that ends last. The ticket is the same on all nodes, so that nodes with
-- the same waiters agree on the next one. An id is "base-wN": N is published on the base's channel.
local place_ms, claim_ms, places_max, drops_max = 15000, 150, 10000, 100
local call, queues = redis.call, {}

local function now_ms()
  time = time or call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Returns the moment at which a place ends, and if its manager listened; nil without a place.
local function lapse_of(queue, id)
  local score = call('ZSCORE', queue.name, '~' .. id)
  if not score then return nil end
  local sum = -tonumber(score)
  return math.floor(sum / 2), sum % 2 == 1
end

local function set_lapse(queue, id, lapse, listened)
  local score = string.format('-%.0f', 2 * lapse + (listened and 1 or 0))
  call('ZADD', queue.name, score, '~' .. id)
  local last = call('ZRANGEBYSCORE', queue.name, '-inf', '(0', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  call('PEXPIRE', queue.name, math.max(1, math.floor(-tonumber(last) / 2) - now_ms()))
end

local function leave(queue, id)
  call('ZREM', queue.name, id, '~' .. id)
end

-- Removes places that have lapsed, a limited number, so that a call stays short.
local function drop_lapsed(queue)
  local upto = string.format('-%.0f', 2 * now_ms() + 1)
  local lapsed = call('ZRANGEBYSCORE', queue.name, upto, '(0', 'LIMIT', 0, drops_max)
  if #lapsed == 0 then return end
  queue.has_more = #lapsed == drops_max
  for n = 1, #lapsed do lapsed[#lapsed + 1] = string.sub(lapsed[n], 2) end
  call('ZREM', queue.name, unpack(lapsed))
end

-- Returns the same queue for the same name, without places that have lapsed.
local function queue_of(name, lock)
  local queue = queues[name]
  if queue then return queue end
  queue = {name = name, lock = lock}
  queues[#queues + 1], queues[name] = queue, queue
  drop_lapsed(queue)
  return queue
end

local function head_of(queue)
  local found = call('ZRANGEBYSCORE', queue.name, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if not found[1] then return nil end
  local head = {id = found[1], ticket = tonumber(found[2])}
  head.lapse, head.listened = lapse_of(queue, head.id)
  if head.lapse then return head end
  -- Without an end it would stay for good.
  leave(queue, head.id)
  return head_of(queue)
end

-- Returns the head if it is another waiter that comes first. Without a ticket every waiter does.
local function head_before(queue, ticket, id)
  local head = head_of(queue)
  if not head or not ticket then return head end
  if head.id == id or head.ticket > ticket then return nil end
  if head.ticket < ticket or head.id < id then return head end
end

local function base_and_number(id)
  return string.match(id, '^(.*)%-w(%w+)$')
end

-- Takes a place, or keeps it: a place with more than half of its life left is not written again.
-- Returns how many have a smaller ticket.
local function stand(queue, ticket, id)
  local name, now = queue.name, now_ms()
  local score, lapse = call('ZSCORE', name, id), lapse_of(queue, id)
  local is_full = not score and call('ZCARD', name) >= 2 * places_max
  if not is_full then
    if tonumber(score) ~= ticket then call('ZADD', name, string.format('%.0f', ticket), id) end
    if not lapse or lapse - now <= place_ms / 2 then
      local base = base_and_number(id)
      set_lapse(queue, id, now + place_ms, base and listeners(name, base) > 0)
    end
  end
  -- Those in front are not known while lapsed places are left: it asks again soon.
  if queue.has_more then return 0 end
  return call('ZCOUNT', name, 0, string.format('(%.0f', ticket))
end

-- Shortens the place's life, never prolongs it: a dead waiter that is notified again and again
-- would otherwise stay the head for good.
local function lapse_soon(queue, id, lapse, listened)
  local soon = now_ms() + claim_ms
  if lapse > soon then set_lapse(queue, id, soon, listened) end
end

-- Returns for how long the head keeps the others from a free lock.
local function time_left(head)
  return string.format('%.0f', math.max(0, math.min(head.lapse - now_ms(), claim_ms)))
end

-- Granted: the place stays, because this may be one vote of too few, but only for a moment.
local function claimed(queue, id)
  local lapse, listened = lapse_of(queue, id)
  if lapse then lapse_soon(queue, id, lapse, listened) end
end

-- Notifies the head of a queue, and no other waiter. If its manager listened and has no subscriber
-- now, it is gone: its place ends, and the next one is the head. If only its connection is gone, it
-- takes its place again when it next asks, marked as not listening.
local function notify_head(queue)
  for _ = 1, drops_max do
    local head = head_of(queue)
    if not head or head.id == queue.keeper or head.lapse <= now_ms() then return end
    local base, number = base_and_number(head.id)
    local received = base and publish(queue.name, base, number)
    if received ~= 0 or not head.listened then
      return lapse_soon(queue, head.id, head.lapse, head.listened)
    end
    leave(queue, head.id)
  end
end

-- Notifies the head of each queue whose lock is free now.
local function notify_heads(is_free)
  for n = 1, #queues do
    if is_free(queues[n].lock) then notify_head(queues[n]) end
  end
end
