import type { Redis } from "ioredis";
import { FenceRejectedError } from "../../src/core/errors.ts";
import { fenceOf, type Fenced } from "../../src/fencing/guard.ts";

/**
 * Raises the fence of a guarded key without changing its value. Fences are whole numbers as text,
 * too great for Lua numbers: the longer one is greater, then the one that sorts later.
 */
const script = `
local last = redis.call('HGET', KEYS[1], 'fence')
if last and (#last > #ARGV[1] or (#last == #ARGV[1] and last > ARGV[1])) then return last end
redis.call('HSET', KEYS[1], 'fence', ARGV[1])
return ARGV[1]`;

/**
 * Raises the guard's fence before a read. A holder that reads first and writes later must exclude
 * older holders before it reads: otherwise an older one could write in between, unseen.
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
