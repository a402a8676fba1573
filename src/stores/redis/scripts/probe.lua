-- Used by the doctor: reads the clock and the node record, checks which commands this user may run,
-- and tries a write that changes nothing.
-- KEYS: [1] a name that no lock has, [2] node record, where there is one
-- ARGV: [1..] complete commands to check, with @1 and @2 for the keys. A server that looks
--       for the keys of an incomplete command may read beyond its end
-- Returns lines: "D sec usec", with "-" if the clock may not be read
--                the commands this user may not run, with spaces between; "?" if unknown
--                the error reply to the write, if any
--                "rid st since ever mode fmt max off" of the record, "-" for each that is not there
local function denied(command)
  if not redis.acl_check_cmd then return false end
  local words = {}
  for word in string.gmatch(command, '%S+') do
    local place = string.match(word, '^@(%d)$')
    words[#words + 1] = place and KEYS[tonumber(place)] or word
  end
  local known, allowed = pcall(redis.acl_check_cmd, unpack(words))
  return known and not allowed
end

local may_not = {}
if not redis.acl_check_cmd then may_not[1] = '?' end
for i = 1, #ARGV do
  if denied(ARGV[i]) then may_not[#may_not + 1] = string.match(ARGV[i], '^%S+') end
end

local time = redis.pcall('TIME')
local at = time.err and '- -' or time[1] .. ' ' .. time[2]

local refused = ''
if not denied('DEL @1') then
  local deleted = redis.pcall('DEL', KEYS[1])
  if type(deleted) == 'table' and deleted.err then refused = deleted.err end
end

local record = {'-', '-', '-', '-', '-', '-', '-', '-'}
if KEYS[2] then
  local names = {'rid', 'st', 'since', 'ever', 'mode', 'fmt', 'max', 'off'}
  local kept = redis.pcall('HMGET', KEYS[2], unpack(names))
  if not kept.err then
    for i = 1, #names do record[i] = kept[i] or '-' end
  end
end
local lines = {'D ' .. at, table.concat(may_not, ' '), refused, table.concat(record, ' ')}
return table.concat(lines, '\n')
