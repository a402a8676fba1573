-- Part of the scripts that run several operations: what most batches are, told the short way. One
-- lock for each operation, nobody waits, no lock is named twice, every key is as its owner left it.
-- Looks first and writes last; where anything is otherwise it has written nothing, and the long way
-- decides all of it. Needs `values` (what the lock keys hold), `first_key`, `header` (where the
-- runs of operations begin in ARGV), `size_of`, `counters` (nil without fences),
-- `floor`, `ttl_max`, `proposal_max` and `wrong_type`.
local function usual()
  local i, n, seen = header, 0, {}
  local plans, lives, dead = {}, {}, {}
  local raised, count = {}, {'HSET', record}
  while i <= #ARGV do
    local code, ops, ttl = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 3]
    if ARGV[i + 2] ~= '1' or code == 'W' or code == 'P' then return false end
    if counters and code ~= 'R' and tonumber(ttl) > ttl_max then return false end
    local size = size_of(code, 1)
    i = i + 4
    for _ = 1, ops do
      n = n + 1
      local key, value = KEYS[first_key + n - 1], values[n]
      if seen[key] then return false end
      seen[key] = true
      local whole = ARGV[i]
      if code == 'R' then
        if value ~= whole then return false end
        dead[#dead + 1], replies[n] = key, 'R 1 1'
      elseif code == 'A' then
        if value then return false end
        replies[n] = 'G'
        if counters then
          -- The proposal's own text is the fence, unless another number is granted.
          local fence, shard = ARGV[i + 1], ARGV[i + 2]
          local c, counter = tonumber(fence), raised[shard] or counters[shard]
          if c > proposal_max then return false end
          if counter < floor then counter = floor end
          if c <= counter then
            c = counter + 1
            fence = string.format('%.0f', c)
            replies[n] = 'G ' .. fence
          end
          if c > 9007199254740991 then return false end
          local at = #count
          raised[shard], count[at + 1], count[at + 2] = c, shard, fence
          whole = whole .. '|' .. fence
        end
        plans[n], lives[n] = whole, ttl
      else
        if counters then whole = whole .. '|' .. ARGV[i + 1] end
        if value ~= whole then return false end
        lives[n], replies[n] = tonumber(ttl), 'K'
      end
      i = i + size
    end
  end
  -- Counters before keys: an error between the two then only skips numbers.
  if #count > 2 then call(unpack(count)) end
  if #dead > 0 then call('DEL', unpack(dead)) end
  for op, life in pairs(lives) do
    local key, plan = KEYS[first_key + op - 1], plans[op]
    if not plan then
      if life > 0 and call('PTTL', key) < life then call('PEXPIRE', key, life) end
    -- A key that MGET calls empty may hold another type: NX keeps it from being overwritten.
    elseif not call('SET', key, plan, 'PX', life, 'NX') then
      replies[op] = wrong_type(key)
    end
  end
  return true
end
