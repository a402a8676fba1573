-- Part of the scripts that run operations: the only copy of the rules. A script makes operations
-- from its arguments, and a view from the server's data. `run` decides an operation, writes the
-- result, and returns the verdict, which is a line of the reply:
--   acquire   G             granted with the proposal (the client's fence), or without fences
--             G fence       granted with another fence, or granted to this owner before
--             H pttl rank value   held by another
--             Q left rank   free, but others wait; the turn of the first ends in `left` ms
--   touch     K             fence raised, TTL extended or lock proved, on every key
--             N WHY         the owner does not have the lock any more: ABSENT, OTHER, or NEWER
--   release   R deleted total
--   acquire, touch   B since ever max   this node may not vote;  X CODE detail   refused
-- `rank` is the number of waiters before this one, or "-" without an entry in a queue.
--
-- Fields of an operation: code, ttl, first and last (range of its lock keys in KEYS), queue (index
-- of its first queue in KEYS), counter (index of its first counter), owner, fence (proposal), whole
-- (value that its keys should have), ticket and id (of its waiter), block (number of fences to
-- reserve), place (queue entry to remove or to keep).
--
-- Fields of a view: values (of the lock keys, by key), fences (true if values are owner|fence),
-- refusal (verdict on every acquire and touch, or nil), ttl_max, floor, proposal_max, queues (nil
-- if there are none), and with fences read_counter(op, n) and raise_counters(op, fence, text,
-- is_behind).
-- @include shown
-- @include wrong-type

local function split(value, view)
  local owner, fence
  if view.fences then owner, fence = string.match(value, '^(.*)|(%d+)$') end
  return owner or value, fence
end

local function queue_at(op, k, view)
  return view.queues.of(KEYS[op.queue + k - op.first], KEYS[k])
end

-- Called if an acquire is refused. Adds its waiter to the queues of the locks that it has to wait
-- for, and removes it from the other queues. Returns the smallest number of waiters before it.
local function wait(op, view)
  if not op.ticket then return '-' end
  local queues, rank = view.queues, math.huge
  for k = op.first, op.last do
    local queue = queue_at(op, k, view)
    if view.values[KEYS[k]] or queues.head_before(queue, op.ticket, op.id) then
      rank = math.min(rank, queues.enqueue(queue, op.ticket, op.id))
    else
      queues.leave(queue, op.id)
    end
  end
  return string.format('%.0f', rank)
end

-- Returns the time for which a free lock is kept for another waiter. Returns nil if this caller may
-- have the lock; its own queue entries then end soon (`claim`).
local function others_turn(op, view)
  for k = op.first, op.last do
    local head = view.queues.head_before(queue_at(op, k, view), op.ticket, op.id)
    if head then return view.queues.time_left(head) end
  end
  if not op.ticket then return nil end
  for k = op.first, op.last do view.queues.claim(queue_at(op, k, view), op.id) end
end

-- Returns the fence of a new grant, as a number and as text: the proposal's own text, unless
-- another number is granted.
local function next_fence(op, view)
  local c, text = tonumber(op.fence), op.fence
  if c > view.proposal_max then c, text = view.proposal_max, nil end
  if c < view.floor + op.block then c, text = view.floor + op.block, nil end
  for n = 0, op.last - op.first do
    local least = view.read_counter(op, n) + op.block
    if c < least then c, text = least, nil end
  end
  return c, text or string.format('%.0f', c)
end

-- Sets all keys, or none. MGET returns nothing for a key of another type, and NX keeps such a key
-- from being overwritten.
local function set_all(op, value, view)
  for k = op.first, op.last do
    if not redis.call('SET', KEYS[k], value, 'PX', op.ttl, 'NX') then
      for undo = op.first, k - 1 do
        redis.call('DEL', KEYS[undo])
        view.values[KEYS[undo]] = false
      end
      return wrong_type(KEYS[k])
    end
    view.values[KEYS[k]] = value
  end
end

local function refused(op, view)
  if view.refusal then return view.refusal end
  if op.ttl > view.ttl_max then return 'X MAXTTL ' .. string.format('%.0f', view.ttl_max) end
end

local function acquire(op, view)
  local verdict = refused(op, view)
  if verdict then return verdict end
  local mine, found, locks = 0, nil, op.last - op.first + 1
  for k = op.first, op.last do
    local value = view.values[KEYS[k]]
    if value then
      local holder, c = split(value, view)
      if holder ~= op.owner or (view.fences and not c) then
        local pttl = redis.call('PTTL', KEYS[k])
        return 'H ' .. pttl .. ' ' .. wait(op, view) .. ' ' .. shown(value)
      end
      mine, found = mine + 1, c
    end
  end
  -- This acquire is a repeat. The TTL is not renewed: validity counts from the first request.
  if mine == locks then return (found or op.fence) == op.fence and 'G' or 'G ' .. found end
  if mine > 0 then return 'X PARTIAL ' .. mine end
  if view.queues then
    local left = others_turn(op, view)
    if left then return 'Q ' .. left .. ' ' .. wait(op, view) end
  end
  if not view.fences then return set_all(op, op.owner, view) or 'G' end
  local c, text = next_fence(op, view)
  if c > 9007199254740991 then return 'X FENCE ' .. text end
  -- Counters are written before keys: an error between the two then only skips fences.
  view.raise_counters(op, c, text, true)
  verdict = set_all(op, op.owner .. '|' .. text, view)
  return verdict or text == op.fence and 'G' or 'G ' .. text
end

-- Updates a smaller stored fence, and extends the keys. Never creates a key, and never shortens a
-- TTL.
local function touch(op, view)
  local verdict = refused(op, view)
  if verdict then return verdict end
  local is_behind, owner, text = false, split(op.whole, view)
  for k = op.first, op.last do
    local value = view.values[KEYS[k]]
    if not value then return 'N ABSENT' end
    if value ~= op.whole then
      local holder, c = split(value, view)
      if holder ~= owner or not c then return 'N OTHER' end
      -- The same owner has a greater fence: a late acquire of this owner created the key again,
      -- perhaps after another owner had held the lock.
      if tonumber(c) > tonumber(text) then return 'N NEWER' end
      is_behind = true
    end
  end
  if view.fences then view.raise_counters(op, tonumber(text), text, is_behind) end
  for k = op.first, op.last do
    if is_behind then
      redis.call('SET', KEYS[k], op.whole, 'KEEPTTL')
      view.values[KEYS[k]] = op.whole
    end
    if op.ttl > 0 and redis.call('PTTL', KEYS[k]) < op.ttl then
      redis.call('PEXPIRE', KEYS[k], op.ttl)
    end
  end
  return 'K'
end

-- Deletes the keys of the owner, with any fence. Does not check the node: a release is always safe,
-- even on a node that may not vote.
local function release(op, view)
  local owner, deleted = string.match(op.whole, '^(.*)|%d+$') or op.whole, 0
  local how, id = string.sub(op.place, 1, 1), string.sub(op.place, 2)
  for k = op.first, op.last do
    local value = view.values[KEYS[k]]
    if value and (value == op.whole or value == owner
      or string.find(value, owner .. '|', 1, true) == 1)
    then
      deleted = deleted + redis.call('DEL', KEYS[k])
      view.values[KEYS[k]] = false
    end
    if view.queues then
      local queue = queue_at(op, k, view)
      -- "-id" removes a queue entry. "=id" keeps the entry of a waiter that got too few votes, and
      -- keeps this release of the waiter's own keys from notifying that waiter.
      if how == '-' then view.queues.leave(queue, id) end
      if how == '=' then queue.holder_id = id end
    end
  end
  return 'R ' .. deleted .. ' ' .. op.last - op.first + 1
end

local function run(op, view)
  if op.code == 'T' then return touch(op, view) end
  if op.code == 'A' or op.code == 'W' then return acquire(op, view) end
  return release(op, view)
end
