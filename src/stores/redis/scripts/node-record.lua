-- Reads the whole node record, after checking that it was written for the server process that runs
-- now, and not before a restart.
-- KEYS: [1] node record
-- ARGV: [1] verify (send 1), [2] admission, [3] format, [4] maxTtl ms
-- Returns: "W sec usec uptime field value field value ..."   the record, uptime in seconds
--          "X CODE detail"                                   refused, waiting does not help
-- @include record
-- Without INFO nothing can be verified. Only this call is refused: the record stays unchanged, so
-- that the node goes on voting.
-- The script may be cached all the same, because it grants nothing.
if ARGV[2] == 'strict' and not server_run_id() then return 'X NOINFO' end
local time = redis.call('TIME')
local kept = redis.call('HMGET', KEYS[1], 'rid', 'st', 'fmt', 'max')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local refusal = may_vote(kept[1], kept[2], kept[3], kept[4], now)
if refusal and string.sub(refusal, 1, 1) == 'X' then return refusal end
local info = redis.pcall('INFO', 'server')
local uptime = '0'
if type(info) == 'string' then uptime = string.match(info, 'uptime_in_seconds:(%d+)') or '0' end
local all = redis.call('HGETALL', KEYS[1])
return table.concat({'W', time[1], time[2], uptime, table.concat(all, ' ')}, ' ')
