/**
 * The same work with `redlock` 5 and with Holdfast, on the same three servers and the same keys.
 * Old and new processes exclude each other, so you can migrate one process at a time. Uses the
 * servers of `REDIS_URL` (separated by commas), or starts three servers.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createLocks } from "holdfast";
import { redlock as quorum } from "holdfast/redis";
import { Redis } from "ioredis";
import Redlock from "redlock";
import { redisServers } from "./support/local-redis.mjs";

const { urls, stop } = await redisServers(3);
const clients = urls.map((url) => new Redis(url));
const resource = `invoice:${process.pid}`;

// Before.
const redlock = new Redlock(clients, { retryCount: 10, retryDelay: 200, retryJitter: 100 });
await redlock.using([resource], 5_000, async (signal) => {
  if (signal.aborted) throw signal.error;
  console.log("redlock:  using([resource], duration, work): holds it, without a fence");
});

// After. `admission: "off"` is needed only because these servers have just been started.
const locks = createLocks(quorum(clients, { admission: "off" }), { ttl: "5s", wait: "3s" });
await locks.using(resource, async (lease) => {
  lease.signal.throwIfAborted();
  console.log(`holdfast: using(resource, work): holds it, with fence ${lease.fence}`);
});

// During the migration: if one library holds the lock, the other does not get it.
const old = await redlock.acquire([resource], 5_000);
assert.equal(await locks.tryAcquire(resource), undefined);
console.log("redlock holds it:  holdfast's tryAcquire returns undefined");
await old.release();

const lease = await locks.acquire(resource);
await assert.rejects(redlock.acquire([resource], 5_000, { retryCount: 0 }), (error) => {
  console.log(`holdfast holds it: redlock's acquire throws ${error.name}: ${error.message}`);
  return true;
});
await lease.release();

// Release of an expired lock: an error with redlock, a return value with Holdfast.
const expired = await redlock.acquire([resource], 100);
await locks.using(resource, { ttl: "5s" }, async () => {});
await assert.rejects(expired.release(), (error) => {
  console.log(`redlock's release of an expired lock throws ${error.name}`);
  return true;
});
const short = await locks.acquire(resource, { ttl: "100ms" });
await once(short.signal, "abort");
console.log("holdfast's release of an expired lease returns", await short.release());

await locks.close();
for (const client of clients) client.disconnect();
await stop();
