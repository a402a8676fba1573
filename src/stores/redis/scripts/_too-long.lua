-- Part of the scripts that grant or extend. Returns a refusal if a lease would last longer than the
-- deployment of this node allows.
local function too_long(ttl, max)
  max = max or ARGV[2] == 'strict' and ARGV[4]
  if max and tonumber(ttl) > tonumber(max) then return 'X MAXTTL ' .. max end
end
