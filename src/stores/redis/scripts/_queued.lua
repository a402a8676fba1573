-- Part of the scripts that run several operations: whether anybody waits or wants to, and then the
-- queues. Needs `waits` (a queue was found), `first_queue`, and `walk`.
local queue_names, next_queue = {}, first_queue
queued = waits
walk(function(_, code, first, last)
  if code == 'W' then queued = true end
  if code == 'T' then return end
  for k = first, last do queue_names[k], next_queue = KEYS[next_queue], next_queue + 1 end
end)
if queued then
  local texts = call('MGET', unpack(KEYS, first_queue))
  for n = 1, #texts do view[KEYS[first_queue + n - 1]] = texts[n] end
  -- @include places
end
