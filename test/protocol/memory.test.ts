import { expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { redis as redisStore } from "../../src/stores/redis/index.ts";
import { shardCount } from "../../src/stores/redis/commands/keys.ts";
import { connect, nodeRecordKey, shareRedis } from "../support/redis-harness.ts";

/**
 * A million short-lived resources leave nothing on a node except its one record. The test uses a
 * twentieth of that: with 50,000 names each of the 1024 shards gets about 49, and what grew in the
 * first half must not grow in the second.
 */

const redis = shareRedis(1);
const resourceCount = 50_000;
const inFlight = 250;

test("short-lived resources leave only one record of bounded size", async (context) => {
  const server = redis.server(0);
  const locks = createLocks(redisStore(await connect(server.port)), { ttl: "30s" });
  context.onTestFinished(() => locks.close());
  let next = 0;
  const use = async (until: number): Promise<void> => {
    while (next < until) {
      const resource = `order:${next}`;
      next += 1;
      // Every tenth lock is left to expire, as after a crash of its client.
      const abandoned = next % 10 === 0;
      const lease = await locks.acquire(resource, abandoned ? { ttl: "1s" } : {});
      if (!abandoned) await lease.release();
    }
  };
  const useAll = async (until: number): Promise<void> => {
    await Promise.all(Array.from({ length: inFlight }, () => use(until)));
    // Redis removes expired keys little by little.
    await expect.poll(() => server.command("DBSIZE"), { timeout: 30_000 }).toBe(1);
  };
  const size = async () => ({
    keys: await server.command("DBSIZE"),
    fields: Number(await server.command("HLEN", nodeRecordKey)),
    bytes: Number(await server.command("MEMORY", "USAGE", nodeRecordKey, "SAMPLES", "0")),
  });
  await useAll(resourceCount / 2);
  const half = await size();
  await useAll(resourceCount);
  const whole = await size();
  expect(whole.keys).toBe(1);
  expect(whole.fields).toBe(half.fields);
  // One field for each used shard (all of them), plus those about the node itself.
  expect(whole.fields).toBeLessThanOrEqual(shardCount + 10);
  expect(whole.bytes).toBeLessThan(shardCount * 128);
});
