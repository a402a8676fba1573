import type { Redis } from "ioredis";
import { FenceRejectedError } from "../../src/core/errors.ts";
import { fenceOf, type Fenced } from "../../src/fencing/guard.ts";

/**
 * Raises the fence of a guarded key and leaves its value alone. Fences are whole numbers as text,
 * beyond what Lua can count: the longer is the greater, then the one that sorts later.
 */
const script = `
local last = redis.call('HGET', KEYS[1], 'fence')
if last and (#last > #ARGV[1] or (#last == #ARGV[1] and last > ARGV[1])) then return last end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
return ARGV[1]`;

/**
 * A holder that reads first and writes later has to shut out older holders before it reads: a
 * guard that first learns of its fence with the write lets an older one write in between, unseen.
 */
export async function claim(
  client: Redis,
  fenced: Fenced,
  key: string,
  resource: string,
): Promise<void> {
  const fence = fenceOf(fenced);
  const seen = BigInt(String(await client.eval(script, 1, key, String(fence))));
  if (seen > fence) throw new FenceRejectedError(resource, fence, seen);
}
