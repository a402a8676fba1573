-- Part of the scripts that grant or free a lock: the queues of waiters.
--
-- A queue is one sorted set with two members for each waiter:
--   id    its score is the ticket, 0 or more. The smallest ticket is the head; ids decide ties.
--   ~id   its score is -(2 * expiry + listened). `expiry` is the moment (ms) at which the entry
--         ends; `listened` is 1 if the waiter's manager was subscribed when it enqueued.
-- So the expiries come first and the waiters after them, in order. Every lookup is O(log N). The
-- key expires when its last entry ends. The ticket is the same on all nodes, so that nodes with the
-- same waiters agree on the next one. A waiter's id is "base-wN", and base identifies its manager.
-- A notification publishes N on the channel of the base.

-- Returns the functions that work on queues. `now` is the server's time in ms. `sharded` is true in
-- a Cluster, where a channel has to be in the slot of its lock.
local function open_queues(now, sharded)
  local entry_ms, claim_ms, entries_max, drops_max = 15000, 150, 10000, 100
  local call, all = redis.call, {}

  -- These functions ignore errors, because this user may not be allowed to publish: waiters also
  -- make attempts at intervals.
  local function channel_of(name, base)
    return sharded and name .. ':' .. base or 'holdfast:wake:' .. base
  end

  local function publish(name, base, number)
    return redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH', channel_of(name, base), number)
  end

  local function listeners(name, base)
    local count = sharded and 'SHARDNUMSUB' or 'NUMSUB'
    return redis.pcall('PUBSUB', count, channel_of(name, base))[2] or 0
  end

  -- Returns the moment at which an entry ends, and true if its manager was subscribed; nil without
  -- an entry.
  local function expiry_of(queue, id)
    local score = call('ZSCORE', queue.name, '~' .. id)
    if not score then return nil end
    local sum = -tonumber(score)
    return math.floor(sum / 2), sum % 2 == 1
  end

  local function set_expiry(queue, id, expiry, listened)
    local score = string.format('-%.0f', 2 * expiry + (listened and 1 or 0))
    call('ZADD', queue.name, score, '~' .. id)
    local last = call('ZRANGEBYSCORE', queue.name, '-inf', '(0', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    call('PEXPIRE', queue.name, math.max(1, math.floor(-tonumber(last) / 2) - now))
  end

  local function leave(queue, id)
    call('ZREM', queue.name, id, '~' .. id)
  end

  -- Removes expired entries, at most `drops_max`, so that a call stays short.
  local function drop_expired(queue)
    local upto = string.format('-%.0f', 2 * now + 1)
    local expired = call('ZRANGEBYSCORE', queue.name, upto, '(0', 'LIMIT', 0, drops_max)
    if #expired == 0 then return end
    queue.has_more = #expired == drops_max
    for n = 1, #expired do expired[#expired + 1] = string.sub(expired[n], 2) end
    call('ZREM', queue.name, unpack(expired))
  end

  -- Returns the queue with this name, always as the same table. The first call removes expired
  -- entries.
  local function queue_of(name, lock)
    local queue = all[name]
    if queue then return queue end
    queue = {name = name, lock = lock}
    all[#all + 1], all[name] = queue, queue
    drop_expired(queue)
    return queue
  end

  local function head_of(queue)
    local found = call('ZRANGEBYSCORE', queue.name, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not found[1] then return nil end
    local head = {id = found[1], ticket = tonumber(found[2])}
    head.expiry, head.listened = expiry_of(queue, head.id)
    if head.expiry then return head end
    -- An entry without an expiry would stay for good.
    leave(queue, head.id)
    return head_of(queue)
  end

  -- Returns the head if it is another waiter that comes before this caller. A caller without a
  -- ticket comes after all waiters.
  local function head_before(queue, ticket, id)
    local head = head_of(queue)
    if not head or not ticket then return head end
    if head.id == id or head.ticket > ticket then return nil end
    if head.ticket < ticket or head.id < id then return head end
  end

  local function base_and_number(id)
    return string.match(id, '^(.*)%-w(%w+)$')
  end

  -- Adds an entry, or renews it if half of its life is over. Returns the number of waiters with a
  -- smaller ticket.
  local function enqueue(queue, ticket, id)
    local name = queue.name
    local score, expiry = call('ZSCORE', name, id), expiry_of(queue, id)
    local is_full = not score and call('ZCARD', name) >= 2 * entries_max
    if not is_full then
      if tonumber(score) ~= ticket then call('ZADD', name, string.format('%.0f', ticket), id) end
      if not expiry or expiry - now <= entry_ms / 2 then
        local base = base_and_number(id)
        set_expiry(queue, id, now + entry_ms, base and listeners(name, base) > 0)
      end
    end
    -- While expired entries are left, the rank is unknown. With rank 0 the waiter makes an attempt
    -- soon.
    if queue.has_more then return 0 end
    return call('ZCOUNT', name, 0, string.format('(%.0f', ticket))
  end

  -- Shortens the life of an entry, and never prolongs it: a dead waiter that is notified again and
  -- again would otherwise stay the head for good.
  local function expire_soon(queue, id, expiry, listened)
    local soon = now + claim_ms
    if expiry > soon then set_expiry(queue, id, soon, listened) end
  end

  -- Returns the time for which a free lock is kept for the head of the queue.
  local function time_left(head)
    return string.format('%.0f', math.max(0, math.min(head.expiry - now, claim_ms)))
  end

  -- Called if a waiter gets the lock on this node. Its entry stays for a moment, because fewer than
  -- a quorum of nodes may grant.
  local function claim(queue, id)
    local expiry, listened = expiry_of(queue, id)
    if expiry then expire_soon(queue, id, expiry, listened) end
  end

  -- Notifies the head of a queue, and no other waiter. If the head's manager was subscribed before
  -- and is not any more, its entry is removed, and the next waiter is the head. If that manager
  -- only lost its connection, its next attempt adds the entry again, marked as not subscribed.
  local function notify_head(queue)
    for _ = 1, drops_max do
      local head = head_of(queue)
      if not head or head.id == queue.holder_id or head.expiry <= now then return end
      local base, number = base_and_number(head.id)
      local received = base and publish(queue.name, base, number)
      if received ~= 0 or not head.listened then
        return expire_soon(queue, head.id, head.expiry, head.listened)
      end
      leave(queue, head.id)
    end
  end

  -- Notifies the head of each queue whose lock is free now.
  local function notify_heads(values)
    for n = 1, #all do
      if not values[all[n].lock] then notify_head(all[n]) end
    end
  end

  return {
    of = queue_of, head_before = head_before, time_left = time_left, enqueue = enqueue,
    leave = leave, claim = claim, notify_heads = notify_heads
  }
end
