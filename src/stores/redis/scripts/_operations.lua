-- Part of the scripts that run several operations: what the keys hold, as the operations before
-- this one leave it, and the writes that follow once every verdict is known.
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
  return replies
end
