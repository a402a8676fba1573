import { createSentinel as createSentinel6 } from "redis";
import { createSentinel as createSentinel5 } from "redis5";
import { describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { textOf } from "../support/sent-operations.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { startRedisSentinel } from "../support/redis-sentinel.ts";
import { startRedis } from "../../tools/redis/redis-server.mjs";
import { startTcpProxy, type WatchingProxy } from "../support/tcp-proxy.ts";
import { allKinds, ioredisKinds, nodeRedisKinds } from "./client-kinds.ts";

const key = "invoice:42";

function locksOf(client: RedisClient): Locks {
  const locks = createLocks(redis(client, { nodeTimeout: "2s" }), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

/**
 * Releases, and breaks the connection after the server ran the release and before the reply
 * arrives.
 */
async function releaseIntoCut(locks: Locks, proxies: readonly WatchingProxy[]) {
  // The first release on a server loads the script there.
  await (await locks.acquire(key)).release();
  const lease = await locks.acquire(key);
  for (const proxy of proxies) proxy.holdRepliesAfter(textOf("release"));
  const releasing = lease.release();
  await eventually(() => proxies.some((proxy) => proxy.hasHeldReplies));
  // The other connections stay: a Cluster client without any connection gives up and resends
  // nothing.
  for (const proxy of proxies) if (proxy.hasHeldReplies) proxy.cutBeforeReply();
  for (const proxy of proxies) proxy.replies = "pass";
  return await releasing;
}

const unconfirmed = { released: false, reason: "unreachable" };

test.each(allKinds)(
  "$name: a release that may have run twice is not reported as taken",
  async (kind) => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const proxy = await startTcpProxy(server.port);
    const opened = await kind.open(proxy.port);
    onTestFinished(() => void opened.close());
    const locks = locksOf(opened.client);
    expect(await releaseIntoCut(locks, [proxy])).toEqual(unconfirmed);
    expect(await server.command("EXISTS", key)).toBe(0);
    const lease = await locks.acquire(key);
    await server.command("DEL", key);
    expect(await lease.release()).toEqual({ released: false, reason: "taken" });
  },
);

describe("in a Cluster", () => {
  test.each([...ioredisKinds, ...nodeRedisKinds])(
    "$name: a release that may have run twice is not reported as taken",
    async (kind) => {
      const cluster = await startRedisCluster(3);
      onTestFinished(() => cluster.stop());
      const ports = cluster.nodes.map(({ port }) => port);
      const proxies = await Promise.all(ports.map((port) => startTcpProxy(port)));
      const addresses = Object.fromEntries(
        ports.map((port, index) => {
          return [`127.0.0.1:${port}`, { host: "127.0.0.1", port: proxies[index]?.port ?? 0 }];
        }),
      );
      const options = { natMap: addresses, nodeAddressMap: addresses };
      const opened = await kind.openCluster(ports, options);
      onTestFinished(() => void opened.close());
      const locks = locksOf(opened.client);
      expect(await releaseIntoCut(locks, proxies)).toEqual(unconfirmed);
      const lease = await locks.acquire(key);
      await (await cluster.nodeOf(key)).command("DEL", key);
      expect(await lease.release()).toEqual({ released: false, reason: "taken" });
    },
  );
});

describe("behind Sentinel", () => {
  const libraries = [
    { name: "node-redis 5", create: createSentinel5 as unknown as typeof createSentinel6 },
    { name: "node-redis 6", create: createSentinel6 },
  ];
  test.each(libraries)(
    "$name: a release that may have run twice is not reported as taken",
    async ({ create }) => {
      const sentinel = await startRedisSentinel();
      onTestFinished(() => sentinel.stop());
      const proxy = await startTcpProxy(sentinel.master.port);
      const address = { host: "127.0.0.1", port: proxy.port };
      const client = create({
        name: sentinel.name,
        sentinelRootNodes: [...sentinel.sentinels],
        nodeAddressMap: { [`127.0.0.1:${sentinel.master.port}`]: address },
        nodeClientOptions: { socket: { reconnectStrategy: 50 } },
      });
      client.on("error", () => undefined);
      await client.connect();
      onTestFinished(() => void client.destroy());
      const locks = locksOf(client);
      expect(await releaseIntoCut(locks, [proxy])).toEqual(unconfirmed);
      const lease = await locks.acquire(key);
      await sentinel.master.command("DEL", key);
      expect(await lease.release()).toEqual({ released: false, reason: "taken" });
    },
  );
});
