-- Returns the layout that this node belongs to: the set of groups (independent quorums) that all
-- clients use. Claims the node (it then grants for none), or opens it for a new layout. Grants
-- nothing. The version of the layout never decreases on a node.
-- KEYS: [1] node record
-- ARGV: [1] look, claim (close it for older layouts), open (when claimed for long enough) or heal
--       (open at once: the layout is already open on other nodes),
--       [2] version, [3] open and [4] claimed format, [5] wire format without groups,
--       [6] least wait in ms, [7] floor for every fence, [8] ids of all groups, [9] hold in ms
-- Returns: "O floor"                              open for this layout
--          "C waited hold max highest ids"        claimed by this layout for `waited` ms
--          "P 0 hold max highest ids"             still in an older layout
--          "F 0 hold max highest ids"             in no layout
--          "X FORMAT format"                      in another layout of this version, or a newer one
local record, act = KEYS[1], ARGV[1]
local kept = redis.call('HMGET', record, 'fmt', 'lat', 'hold', 'max', 'ids', 'floor')
local fmt, at = kept[1], kept[2]
if fmt == ARGV[3] then return 'O ' .. (kept[6] or '0') end
if fmt and fmt ~= ARGV[4] then
  local base, version = string.match(fmt, '^(.-)/%a+:(%d+):')
  -- One quorum without groups counts as the first layout.
  if (base or fmt) ~= ARGV[5] or tonumber(version or 1) >= tonumber(ARGV[2]) then
    return 'X FORMAT ' .. fmt
  end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if act == 'claim' and fmt ~= ARGV[4] then
  -- A node that had no layout before has no older leases to wait for.
  at = fmt and string.format('%.0f', now) or '0'
  fmt = ARGV[4]
  redis.call('HSET', record, 'fmt', fmt, 'lat', at)
end
local waited = fmt == ARGV[4] and now - tonumber(at or now) or 0
local hold = tonumber(kept[3] or 0)
local over = fmt == ARGV[4] and waited >= tonumber(ARGV[6]) and waited >= hold
if act == 'heal' or (act == 'open' and over) then
  local floor = kept[6] or '0'
  -- The floor is written before the format: after an error between the two, the node still grants
  -- for no layout.
  if tonumber(floor) < tonumber(ARGV[7]) then
    floor = ARGV[7]
    redis.call('HSET', record, 'floor', floor)
  end
  redis.call('HSET', record, 'fmt', ARGV[3], 'ids', ARGV[8], 'hold', ARGV[9])
  redis.call('HDEL', record, 'lat')
  return 'O ' .. floor
end
local highest = 0
local all = redis.call('HGETALL', record)
for i = 1, #all, 2 do
  if all[i] == 'floor' or string.match(all[i], '^%d+$') then
    highest = math.max(highest, tonumber(all[i + 1]))
  end
end
local state = fmt == ARGV[4] and 'C' or (fmt and 'P' or 'F')
return table.concat({state, string.format('%.0f', waited), string.format('%.0f', hold),
  kept[4] or '0', string.format('%.0f', highest), kept[5] or '-'}, ' ')
