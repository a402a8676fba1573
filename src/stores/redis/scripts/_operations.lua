-- Part of the scripts that run several operations: what the keys hold, as the operations before
-- this one leave it, and the writes that follow once every verdict is known. Lists for all
-- operations instead of a table for each: making and growing tables was most of a batch's cost.
-- Needs `values` (what the lock keys hold), `locks_all` (how many), `first_key`, `header` (where
-- the runs of operations begin in ARGV), `size_of` (the arguments of one of them) and
-- `wrong_type`.
local view, args = {}, #ARGV
-- Keys that MGET calls empty, and that hold another type.
local others, texts = {}, 0
for n = 1, locks_all do
  view[KEYS[first_key + n - 1]] = values[n]
  if values[n] then texts = texts + 1 end
end
if call('EXISTS', unpack(KEYS, first_key, first_key + locks_all - 1)) > texts then
  for n = 1, locks_all do
    local key = KEYS[first_key + n - 1]
    others[key] = not values[n] and call('EXISTS', key) == 1
  end
end

-- Visits each operation: number, code, first and last lock key, where its arguments begin, ttl.
local function walk(visit)
  local i, n, key = header, 0, first_key
  while i <= args do
    local code, ops, locks, ttl = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
    local size = size_of(code, locks)
    i = i + 4
    for _ = 1, ops do
      n = n + 1
      visit(n, code, key, key + locks - 1, i, ttl)
      key, i = key + locks, i + size
    end
  end
end

-- By operation: the value that an acquire sets, or a touch raises to (true: it leaves the value);
-- and the life that an acquire gives.
local plans, ttls = {}, {}
-- By place in KEYS: what a release deletes.
local deletes = {}

-- Returns a refusal where one of the keys holds another type.
local function will_set(n, first, last, value, ttl)
  for k = first, last do
    if others[KEYS[k]] then return wrong_type(KEYS[k]) end
  end
  plans[n], ttls[n] = value, ttl
  for k = first, last do view[KEYS[k]] = value end
end

-- The life of a key that is held; of one that this very call sets, what it will be.
local function pttl_of(name, value)
  for n, plan in pairs(plans) do
    if plan == value and ttls[n] then return ttls[n] end
  end
  return call('PTTL', name)
end

local function will_touch(n, first, last, value)
  plans[n] = value or true
  if value then
    for k = first, last do view[KEYS[k]] = value end
  end
end

-- @include belongs
local function release(first, last, whole, place)
  local deleted = 0
  for k = first, last do
    if belongs(view[KEYS[k]], whole) then
      deleted = deleted + 1
      deletes[k], view[KEYS[k]] = true, false
    end
  end
  if queued then leave_queues(first, last, place) end
  if first == last then return deleted == 1 and 'R 1 1' or 'R 0 1' end
  return 'R ' .. deleted .. ' ' .. (last - first + 1)
end

local function set_all(n, first, last, ttl)
  for k = first, last do call('SET', KEYS[k], plans[n], 'PX', ttl) end
end

local function touch_all(n, first, last, ttl)
  for k = first, last do
    if plans[n] ~= true then call('SET', KEYS[k], plans[n], 'KEEPTTL') end
    if ttl > 0 and call('PTTL', KEYS[k]) < ttl then call('PEXPIRE', KEYS[k], ttl) end
  end
end

-- Deletions wait for one another, but not beyond the next write to one of their keys.
local dead, doomed = {}, {}
local function bury()
  if #dead > 0 then call('DEL', unpack(dead)) end
  dead, doomed = {}, {}
end

local function write(n, code, first, last, _, ttl)
  if code == 'R' or code == 'P' then
    for k = first, last do
      if deletes[k] then dead[#dead + 1], doomed[KEYS[k]] = KEYS[k], true end
    end
  elseif plans[n] then
    for k = first, last do
      if doomed[KEYS[k]] then bury() end
    end
    if code == 'T' then touch_all(n, first, last, tonumber(ttl))
    else set_all(n, first, last, ttl) end
  end
end
