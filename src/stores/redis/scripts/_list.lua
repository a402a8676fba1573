-- Part of the scripts that run operations, behind run-at: from arguments to operations, and from
-- verdicts to the reply. The arguments are runs of operations of one kind: "code count locks",
-- where locks is the number of lock keys of each; ttl ms; and for each of them
--   A (acquire)                 owner, proposal, shard of each key
--   W (acquire in the queues)   as A, then ticket, waiter id, and how many fences to reserve: the
--                               one granted and those right below it
--   T (touch)                   value that its owner left, raised to the fence that it is to have;
--                               shard of each key
--   R (release)                 value that its owner left, or only the owner
--   P (release with an entry)   as R, then the entry to give up ("-id") or to keep ("=id")
-- The proposal is left out without fences, the shards if there is no record. KEYS has the lock keys
-- of all operations, then their counters if these are keys (not of releases), then their queues
-- (not of touches).

-- Returns the operations from ARGV[at] on, and if one of them is a W. `counter` is where the first
-- counter is in KEYS, 0 if the shards are arguments, nil without fences.
local function read_operations(at, lock, queue, counter)
  local ops, has_waiter, by_shard = {}, false, counter == 0
  while at <= #ARGV do
    local code, count, locks = run_at(at)
    local ttl, is_release = tonumber(ARGV[at + 1]), code == 'R' or code == 'P'
    at = at + 2
    for _ = 1, count do
      local op = {code = code, ttl = ttl, first = lock, last = lock + locks - 1, queue = queue}
      op.owner, op.whole, op.block, op.place, at = ARGV[at], ARGV[at], 1, '', at + 1
      if code == 'P' then op.place, at = ARGV[at], at + 1 end
      if counter and not is_release then
        if code ~= 'T' then op.fence, at = ARGV[at], at + 1 end
        op.counter = by_shard and at or counter
        if by_shard then at = at + locks else counter = counter + locks end
      end
      if code == 'W' then
        op.ticket, op.id, op.block = tonumber(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 2])
        at, has_waiter = at + 3, true
      end
      if code ~= 'T' then queue = queue + locks end
      ops[#ops + 1], lock = op, lock + locks
    end
  end
  return ops, has_waiter
end

-- Returns by name what MGET found in the keys from KEYS[first] on; false for those without text.
local function by_name(found, first)
  local values = {}
  for n = 1, #found do values[KEYS[first + n - 1]] = found[n] end
  return values
end

-- Returns the reply: the stamp, and below it a line with the verdict on each operation.
local function run_all(ops, view, stamp)
  local lines = {stamp}
  for n = 1, #ops do lines[n + 1] = run(ops[n], view) end
  if view.queues then view.queues.notify_heads(view.values) end
  return table.concat(lines, '\n')
end
