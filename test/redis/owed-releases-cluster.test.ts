import { createCluster } from "redis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.stop());

const key = "invoice:42";

/**
 * Each function takes the slot of the key out of service, and returns the function that undoes it.
 */
const troubles = [
  {
    error: "CLUSTERDOWN",
    strike: async (owner: RedisServer, slot: string) => {
      await owner.command("CLUSTER", "DELSLOTS", slot);
      return () => owner.command("CLUSTER", "ADDSLOTS", slot);
    },
  },
  {
    error: "TRYAGAIN",
    strike: async (owner: RedisServer, slot: string) => {
      const other = cluster.nodes.find((node) => node !== owner);
      const id = String(await other?.command("CLUSTER", "MYID"));
      // The lock is here and its queue is not, so the server cannot redirect the command.
      await owner.command("CLUSTER", "SETSLOT", slot, "MIGRATING", id);
      return () => owner.command("CLUSTER", "SETSLOT", slot, "STABLE");
    },
  },
];

test.each(troubles)("a release answered by $error is sent again", async ({ error, strike }) => {
  const rootNodes = cluster.nodes.map(({ host, port }) => ({ socket: { host, port } }));
  // node-redis passes such an error on, whereas ioredis retries before it fails.
  const client = createCluster({ rootNodes });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  const locks = createLocks(redis(client, { maxTtl: "60s", nodeTimeout: "5s" }), { ttl: "60s" });
  onTestFinished(() => locks.close());
  const causes: unknown[] = [];
  locks.on("node-failed", ({ cause }) => causes.push(cause));
  const owner = await cluster.nodeOf(key);
  const slot = String(await owner.command("CLUSTER", "KEYSLOT", key));
  const lease = await locks.acquire(key, { renew: false });
  const heal = await strike(owner, slot);
  onTestFinished(() => void heal().catch(() => undefined));
  expect(await lease.release()).toEqual({ released: false, reason: "unreachable" });
  expect(String(causes[0])).toContain(error);
  await heal();
  await eventually(async () => (await owner.command("EXISTS", key)) === 0);
});
