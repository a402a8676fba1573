-- Part of every script that grants, and of node-record. Checks the node record, the hash that
-- Holdfast keeps on each server, before anything else. KEYS[1] is the node record; ARGV[1..4] are:
-- verify (1 or 0), admission (strict or off), wire format, maxTtl in ms.
--
-- Fields of the record: rid (run id of the process that the record belongs to), st (Q quarantined,
-- A admitted; missing if not checked yet), since (start of the quarantine in ms), ever (1 after the
-- first admission), mode (of the last admission), fmt (wire format), max (maxTtl in ms), floor
-- (every new fence is greater), off (time in ms, to the hour, at which a client with admission off
-- last used the node), note, and one counter per shard. A record with st binds all clients: each
-- call verifies the process, st Q refuses all acquires and touches, and max limits every TTL. The
-- field note has a long value, which makes the server store the record as a hash table at once. A
-- short record would be stored as a list, which is searched from its beginning for every field.
local function server_run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return nil end
  -- Searches for the plain text first. A search by pattern alone would be slower, because it tries
  -- to match at every character.
  local _, stop = string.find(info, 'run_id:', 1, true)
  return stop and string.match(info, '^%x+', stop + 1)
end

-- Checks if this node may vote. If the record belongs to another process, takes it over; with
-- admission strict the node is quarantined then. Takes fields of the record (rid: run id, st: A or
-- Q, fmt: wire format, max: maxTtl), and the server's time in ms. Returns nil if the node may vote,
-- otherwise the verdict on each acquire and touch, which is a line of the reply. The second value
-- is for the first line of the reply: the start of the run id, or "-". 12 of its 40 characters are
-- enough to know a process again.
local function may_vote(rid, st, fmt, max, now_ms)
  local record, is_off = KEYS[1], ARGV[2] ~= 'strict'
  local strict = not is_off or st
  if ARGV[1] == '1' or not rid or (strict and (is_off or not st)) then
    local current = server_run_id()
    if not current and strict then return 'X NOINFO', '-' end
    -- The client has admission off and may not run INFO: the run id in the record stays unchanged.
    current = current or rid or '-'
    if current ~= rid or (strict and not st) then
      -- Removes the state "admitted" before any other write. HDEL is allowed even if no memory is
      -- left.
      redis.call('HDEL', record, 'st')
      redis.call('HSET', record, 'rid', current, 'note',
        'holdfast-node-record:a-value-of-this-length-makes-it-a-table-and-no-list')
      if not fmt then redis.call('HSET', record, 'fmt', ARGV[3]) end
      if strict then
        if not max then max = ARGV[4] redis.call('HSET', record, 'max', max) end
        redis.call('HSET', record, 'st', 'Q', 'since', string.format('%.0f', now_ms))
        st = 'Q'
      end
      rid = current
    end
  end
  if fmt and fmt ~= ARGV[3] then return 'X FORMAT ' .. fmt, '-' end
  if st and is_off then
    -- Records that a client with admission off used this node. The doctors of other clients report
    -- it.
    local seen = redis.call('HGET', record, 'off')
    if not seen or now_ms - tonumber(seen) >= 3600000 then
      redis.call('HSET', record, 'off', string.format('%.0f', now_ms))
    end
  end
  -- The run id is returned only if the script has checked that it is the id of this process.
  local cut = strict and string.sub(rid, 1, 12) or '-'
  if strict and st ~= 'A' then
    local kept = redis.call('HMGET', record, 'since', 'ever')
    return 'B ' .. kept[1] .. ' ' .. (kept[2] or '0') .. ' ' .. (max or ARGV[4]), cut
  end
  return nil, cut
end
