// @ts-check
/** Counts the keys that a contender left on the servers after it had released everything. */

import { setTimeout as sleep } from "node:timers/promises";
import { RedisConnection } from "../tools/redis/redis-connection.mjs";

const countScript =
  "local n=0 local c='0' repeat local r=redis.call('SCAN',c,'MATCH',ARGV[1],'COUNT',1000) " +
  "c=r[1] n=n+#r[2] until c=='0' return n";
// A minority of the nodes may delete keys later than the release resolves.
const patienceMs = 2_000;

/** @param {readonly number[]} ports @param {string} prefix @returns {Promise<number>} keys */
export async function keysLeft(ports, prefix) {
  const untilMs = performance.now() + patienceMs;
  for (;;) {
    const counts = await Promise.all(ports.map((port) => countKeys(port, prefix)));
    const left = counts.reduce((sum, count) => sum + count, 0);
    if (left === 0 || performance.now() > untilMs) return left;
    await sleep(50);
  }
}

/** @param {number} port @param {string} prefix */
export async function countKeys(port, prefix) {
  const client = await RedisConnection.open({ port });
  const count = Number(await client.send("EVAL", countScript, "0", `*${prefix}*`));
  client.close();
  return count;
}
