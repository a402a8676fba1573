-- Part of the scripts with queues, in a Cluster: a channel in the slot of the lock. A user who may
-- not publish is no reason to fail: those who wait ask again by themselves.
local function publish(name, base, number)
  return redis.pcall('SPUBLISH', name .. ':' .. base, number)
end

local function listeners(name, base)
  return redis.pcall('PUBSUB', 'SHARDNUMSUB', name .. ':' .. base)[2] or 0
end
