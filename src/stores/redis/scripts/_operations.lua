-- Part of the scripts that run several operations: what the keys hold, as the operations before
-- this one leave it, and the writes that follow once every verdict is known. An acquire and a
-- release name the queue of each lock behind their lock keys, a touch names none.
local view, ttl_view = {}, {}
local values = redis.call('MGET', unpack(KEYS, first_key))
for n, value in ipairs(values) do view[KEYS[first_key + n - 1]] = value end

local function pttl_of(name)
  return ttl_view[name] or redis.call('PTTL', name)
end

local function will_set(op, value)
  op.value = value
  for k = op.first, op.last do view[KEYS[k]], ttl_view[KEYS[k]] = value, op.ttl end
end

local function will_touch(op, value, ttl)
  op.touched, op.raised, op.extended = true, value, ttl
  if value then
    for k = op.first, op.last do view[KEYS[k]] = value end
  end
end

-- The queue of a lock key of an operation; nil where nobody waits, unless one is to be begun.
local function queue_at(op, k, begin)
  local name = KEYS[k + op.last - op.first + 1]
  if begin or view[name] or queues[name] then return queue_of(name, KEYS[k], view[name]) end
end

-- A free lock may be for others. Then, or where it is held, whoever wants to wait takes a place in
-- the queues that keep it waiting, and stands in nobody's way in the rest.
local function first_of_others(op)
  for k = op.first, op.last do
    local queue = queue_at(op, k, false)
    if queue and turn_of_another(queue, op.ticket, op.id) then return queue[1] end
  end
end

local function wait_in_queues(op)
  if not op.ticket then return end
  for k = op.first, op.last do
    local value = view[KEYS[k]]
    local queue = queue_at(op, k, value)
    if value or (queue and turn_of_another(queue, op.ticket, op.id)) then
      stand(queue, op.ticket, op.id)
    elseif queue then
      leave(queue, op.id)
    end
  end
end

local function claim_places(op)
  if not op.ticket then return end
  for k = op.first, op.last do
    local queue = queue_at(op, k, false)
    if queue then claimed(queue, op.id) end
  end
end

local function is_owned(value, owner)
  return value and (value == owner or string.sub(value, 1, #owner + 1) == owner .. '|')
end

local function release(op)
  op.deleted = {}
  for k = op.first, op.last do
    if is_owned(view[KEYS[k]], op.owner) then
      op.deleted[#op.deleted + 1] = KEYS[k]
      view[KEYS[k]], ttl_view[KEYS[k]] = false, nil
    end
    -- "-id" gives up a place, "=id" keeps one after a vote that was not enough.
    local queue = queue_at(op, k, false)
    if queue and string.sub(op.place, 1, 1) == '-' then leave(queue, string.sub(op.place, 2)) end
    if queue and string.sub(op.place, 1, 1) == '=' then queue.keeper = string.sub(op.place, 2) end
  end
  return 'R ' .. #op.deleted .. ' ' .. (op.last - op.first + 1)
end

-- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
local function set_all(op)
  for k = op.first, op.last do
    if not redis.call('SET', KEYS[k], op.value, 'PX', op.ttl, 'NX') then
      for undo = op.first, k - 1 do redis.call('DEL', KEYS[undo]) end
      op.reply = 'X WRONGTYPE'
      return
    end
  end
end

local function touch_all(op)
  for k = op.first, op.last do
    if op.raised then redis.call('SET', KEYS[k], op.raised, 'KEEPTTL') end
    if op.extended > 0 and redis.call('PTTL', KEYS[k]) < op.extended then
      redis.call('PEXPIRE', KEYS[k], op.extended)
    end
  end
end

local function write_all(ops)
  local replies = {}
  for n, op in ipairs(ops) do
    if op.value then set_all(op)
    elseif op.touched then touch_all(op)
    elseif op.deleted and #op.deleted > 0 then redis.call('DEL', unpack(op.deleted)) end
    replies[n] = op.reply
  end
  write_queues(function(lock) return not view[lock] end)
  return replies
end
