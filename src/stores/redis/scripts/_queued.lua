-- Part of the scripts that run several operations: the queues, if one of them exists or an
-- operation asks for a place. Needs `waits` (a queue exists), `first_queue`, and `walk`.
local queue_names, next_queue = {}, first_queue
queued = waits
walk(function(_, code, first, last)
  if code == 'W' then queued = true end
  if code == 'T' then return end
  for k = first, last do queue_names[k], next_queue = KEYS[next_queue], next_queue + 1 end
end)
if queued then
  -- @include places
end
