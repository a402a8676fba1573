-- Part of the scripts that run operations, included after run-at: makes operations from the
-- arguments, and the reply from the verdicts (the lines of the reply). The arguments are runs:
-- operations of one kind. A shard is the number of the counter that a key uses. A run
-- is "code count locks", where locks is the number of lock keys of each operation; then the ttl in
-- ms; and then for each operation
--   A (acquire)                 owner, proposal (fence that the client suggests), shard of each key
--   W (acquire in the queues)   as A, then ticket, waiter id, and number of fences to reserve: the
--                               one granted and those right below it
--   T (touch)                   value that the keys should have, with the fence to store;
--                               shard of each key
--   R (release)                 value that the keys should have, or only the owner
--   P (release with an entry)   as R, then the queue entry to remove ("-id") or to keep ("=id")
-- Without fences there are no proposals. Without a node record there are no shards. KEYS has the
-- lock keys of all operations, then their counters if counters are keys (releases have none), then
-- their queues (touches have none).

-- Returns the operations that begin at ARGV[at], and true if one of them has the code W. `counter`
-- is the index of the first counter in KEYS, 0 if the shards are arguments, or nil without fences.
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

-- Returns the values that MGET found, by key. The first one is that of KEYS[first]. A key without
-- text has the value false.
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
