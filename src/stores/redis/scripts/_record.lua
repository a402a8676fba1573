-- Part of every script that grants, and of node-record. Checks the node record before anything
-- else.
-- KEYS[1] is the node record; ARGV[1..4] are: verify (1 or 0), admission (strict or off),
-- wire format, maxTtl in ms.
--
-- The record: rid (run id of the process it belongs to), st (Q quarantined, A admitted; neither:
-- not checked yet), since (ms, start of the quarantine), ever (1 once admitted), mode (how it was
-- admitted last), fmt, max (maxTtl in ms), floor (no fence at or below it), off (ms, when a client
-- with admission off was here, to the hour), and one counter per shard. A record with st binds all
-- clients: each call verifies it, Q refuses all of them, and max limits every TTL. A long value,
-- note, makes the server keep it as a table at once: a short list would be searched from its
-- beginning for every field.
local function server_run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return nil end
  -- Found as plain text first: a pattern would be tried at every character before it.
  local _, stop = string.find(info, 'run_id:', 1, true)
  return stop and string.match(info, '^%x+', stop + 1)
end

-- Takes the fields of the record and the server's time in ms. Returns nil if this node may vote,
-- otherwise the verdict on every acquire and touch; and the run id, cut.
local function may_vote(rid, st, fmt, max, now_ms)
  local record, is_off = KEYS[1], ARGV[2] ~= 'strict'
  local strict = not is_off or st
  if ARGV[1] == '1' or not rid or (strict and (is_off or not st)) then
    local current = server_run_id()
    if not current and strict then return 'X NOINFO', '-' end
    -- Without the right to run INFO, and with admission off: leave the record as others keep it.
    current = current or rid or '-'
    if current ~= rid or (strict and not st) then
      -- First of all it must stop saying "admitted", which is allowed also where no memory is left.
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
    -- Noted for the doctors of the other clients.
    local seen = redis.call('HGET', record, 'off')
    if not seen or now_ms - tonumber(seen) >= 3600000 then
      redis.call('HSET', record, 'off', string.format('%.0f', now_ms))
    end
  end
  -- Known only if the script has checked which process this is.
  local cut = strict and string.sub(rid, 1, 12) or '-'
  if strict and st ~= 'A' then
    local kept = redis.call('HMGET', record, 'since', 'ever')
    return 'B ' .. kept[1] .. ' ' .. (kept[2] or '0') .. ' ' .. (max or ARGV[4]), cut
  end
  return nil, cut
end
