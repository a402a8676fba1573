import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { allKinds } from "../clients/client-kinds.ts";
import { sentinelLibraries } from "../clients/sentinel-clients.ts";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisSentinel, startRedisSentinel } from "../support/redis-sentinel.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { listenersOf } from "./waiting-scene.ts";

/**
 * Kills of the connection that a manager opens beside the user's client, at many moments. Any
 * rejection without a handler would end the user's process: `no-unhandled-rejections.ts` fails the
 * file for each.
 */

const key = "invoice:42";
const turns = 16;
const retry = { minDelay: 50, maxDelay: 50 } as const;

interface Scene {
  /** Opens a manager on its own client, which is closed when the test is over. */
  open(): Promise<RedisClient>;
  readonly servers: readonly RedisServer[];
}

async function onAll(servers: readonly RedisServer[], ...command: string[]): Promise<void> {
  await Promise.all(servers.map((server) => server.command(...command)));
}

async function untilListening({ servers }: Scene): Promise<void> {
  await eventually(async () => {
    const counts = await Promise.all(servers.map(listenersOf));
    return counts.some((count) => count > 0);
  });
}

function kill({ servers }: Scene): Promise<void> {
  return onAll(servers, "CLIENT", "KILL", "TYPE", "pubsub");
}

function managerOn(client: RedisClient): Locks {
  return createLocks(redis(client), { ttl: "20s", wait: "forever", retry });
}

async function killBesideWaitsAndClose(scene: Scene): Promise<void> {
  const client = await scene.open();
  const holding = managerOn(client);
  onTestFinished(() => holding.close());
  const held = await holding.acquire(key);
  for (let turn = 0; turn < turns; turn += 1) {
    const locks = managerOn(client);
    const waiting = locks.acquire(key).catch((error: unknown) => error);
    await untilListening(scene);
    await kill(scene);
    // Before the loss is noticed, during the reconnect, and after it.
    await sleep(turn * 10);
    if (turn % 3 === 0) await kill(scene);
    await locks.close();
    expect(await waiting).toMatchObject({ code: "CLOSED" });
  }
  await held.release();
}

async function revokeBesideWaits(scene: Scene): Promise<void> {
  const client = await scene.open();
  const allow = (): Promise<void> =>
    onAll(scene.servers, "ACL", "SETUSER", "default", "allchannels");
  onTestFinished(allow);
  const [holding, locks] = [managerOn(client), managerOn(client)];
  onTestFinished(async () => {
    await Promise.all([holding.close(), locks.close()]);
  });
  const held = await holding.acquire(key);
  const warned = new Promise((resolve) => {
    locks.on("warning", ({ code }) => {
      if (code === "no-wake-ups") resolve(code);
    });
  });
  const waiting = locks.acquire(key);
  await untilListening(scene);
  await onAll(scene.servers, "ACL", "SETUSER", "default", "resetchannels");
  expect(await warned).toBe("no-wake-ups");
  await held.release();
  await (await waiting).release();
}

function closing(opened: { readonly client: RedisClient; close(): unknown }): RedisClient {
  onTestFinished(async () => {
    await opened.close();
  });
  return opened.client;
}

describe("on one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  const sceneOf = (kind: (typeof allKinds)[number]): Scene => ({
    servers: [server],
    open: async () => closing(await kind.open(server.port)),
  });

  test.each(allKinds)(
    "the subscriber of $name is killed during waits and close()",
    async (kind) => {
      await killBesideWaitsAndClose(sceneOf(kind));
    },
  );

  test.each(allKinds)("the user of $name loses the right to subscribe", async (kind) => {
    await revokeBesideWaits(sceneOf(kind));
  });
});

describe("in a Cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(() => cluster.stop());

  const sceneOf = (kind: (typeof allKinds)[number]): Scene => ({
    servers: cluster.nodes,
    async open() {
      const client = closing(await kind.openCluster(cluster.nodes.map(({ port }) => port)));
      const locks = managerOn(client);
      await eventually(async () => (await locks.acquire("warm-up")).release());
      await locks.close();
      return client;
    },
  });

  test.each(allKinds)(
    "the subscriber of $name is killed during waits and close()",
    async (kind) => {
      await killBesideWaitsAndClose(sceneOf(kind));
    },
  );

  test.each(allKinds)("the user of $name loses the right to subscribe", async (kind) => {
    await revokeBesideWaits(sceneOf(kind));
  });
});

describe("behind Sentinel", () => {
  let sentinel: RedisSentinel;
  beforeAll(async () => {
    sentinel = await startRedisSentinel();
  });
  afterAll(() => sentinel.stop());

  // The Sentinel client of node-redis 5 cannot be duplicated, so no connection is opened beside it.
  const libraries = sentinelLibraries.filter(({ name }) => name !== "node-redis 5");

  test.each(libraries)(
    "the subscriber of $name is killed during waits and close()",
    async ({ open }) => {
      await killBesideWaitsAndClose({
        servers: [sentinel.master],
        async open() {
          const opened = open(sentinel);
          await opened.connect();
          return closing(opened);
        },
      });
    },
  );
});
