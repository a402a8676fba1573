-- Part of the scripts with queues, on a server of its own: one channel for each base. A user who
-- may not publish is no reason to fail: those who wait ask again by themselves.
local function publish(_, base, number)
  return redis.pcall('PUBLISH', 'holdfast:wake:' .. base, number)
end

local function listeners(_, base)
  return redis.pcall('PUBSUB', 'NUMSUB', 'holdfast:wake:' .. base)[2] or 0
end
