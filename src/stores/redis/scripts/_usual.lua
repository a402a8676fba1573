-- Part of the scripts that run operations: the fast path for a list. It handles lists with one lock
-- for each operation, no queues, no lock in two operations, and in every key the value that the
-- sender expects. It reads first and writes last. If it meets any other case, it has only extended
-- keys that the engine would extend as well, and the engine decides the whole list.

-- Returns the lines of the reply after its first one, or nil if the engine has to decide. The runs
-- (operations of one kind) begin at ARGV[at], and their lock keys at KEYS[lock]. `values` has the
-- values of these keys. `limits` (nil without fences) has counters (by shard), floor, proposal_max
-- and ttl_max, as the view of the engine.
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
          -- The fence is the text of the proposal, unless another number is granted.
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
  -- Counters are written before keys: an error between the two then only skips fences.
  if #count > 2 then call(unpack(count)) end
  if #dead > 0 then call('DEL', unpack(dead)) end
  for op, plan in pairs(plans) do
    local key = KEYS[lock + op - 1]
    -- MGET returns nothing for a key of another type, and NX keeps such a key from being
    -- overwritten.
    if not call('SET', key, plan, 'PX', lives[op], 'NX') then
      -- @include wrong-type
      lines[op] = wrong_type(key)
    end
  end
  return lines
end
