-- Part of the scripts that run operations: the short way of a list. One lock for each operation, no
-- queues, no lock is named twice, every key is as its owner left it. Looks first and writes last:
-- if anything is otherwise it has only extended what the engine would extend as well, and the
-- engine decides all of it.

-- Returns the lines of the reply after its stamp, or nil. The runs of operations begin at ARGV[at],
-- their locks, which hold `values`, at KEYS[lock]. `limits` (nil without fences) has counters (by
-- shard), floor, proposal_max and ttl_max.
local function usual(at, lock, values, limits)
  local call, lines, n, seen = redis.call, {}, 0, {}
  local plans, lives, dead = {}, {}, {}
  local raised, count = {}, {'HSET', KEYS[1]}
  while at <= #ARGV do
    local code, ops = string.match(ARGV[at], '^([ART]) (%d+) 1$')
    local life = ARGV[at + 1]
    local ttl = tonumber(life)
    if not code then return nil end
    if limits and code ~= 'R' and ttl > limits.ttl_max then return nil end
    at = at + 2
    for _ = 1, tonumber(ops) do
      n = n + 1
      local key, value, whole = KEYS[lock + n - 1], values[n], ARGV[at]
      if seen[key] then return nil end
      at = at + 1
      if code == 'T' then
        if value ~= whole then return nil end
        if ttl > 0 and call('PTTL', key) < ttl then call('PEXPIRE', key, life) end
        lines[n] = 'K'
        if limits then at = at + 1 end
      elseif code == 'R' then
        if value ~= whole then return nil end
        seen[key], dead[#dead + 1], lines[n] = true, key, 'R 1 1'
      else
        if value then return nil end
        seen[key], lines[n] = true, 'G'
        if limits then
          -- The proposal's own text is the fence, unless another number is granted.
          local fence, shard = ARGV[at], ARGV[at + 1]
          local c, counter = tonumber(fence), raised[shard] or limits.counters[shard]
          if c > limits.proposal_max then return nil end
          if counter < limits.floor then counter = limits.floor end
          if c <= counter then
            c = counter + 1
            fence = string.format('%.0f', c)
            lines[n] = 'G ' .. fence
          end
          if c > 9007199254740991 then return nil end
          local last = #count
          raised[shard], count[last + 1], count[last + 2] = c, shard, fence
          whole, at = whole .. '|' .. fence, at + 2
        end
        plans[n], lives[n] = whole, life
      end
    end
  end
  -- Counters before keys: an error between the two then only skips numbers.
  if #count > 2 then call(unpack(count)) end
  if #dead > 0 then call('DEL', unpack(dead)) end
  for op, plan in pairs(plans) do
    local key = KEYS[lock + op - 1]
    -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
    if not call('SET', key, plan, 'PX', lives[op], 'NX') then
      -- @include wrong-type
      lines[op] = wrong_type(key)
    end
  end
  return lines
end
