import { errorMonitor } from "node:events";
import type { EventEmitter } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, type CreateLocksOptions, QuorumError, type Locks } from "../../src/index.ts";
import { redis, redlock } from "../../src/stores/redis/index.ts";
import { timersOnDemand, withoutTimers } from "../redis/waiting-scene.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { collect, rejection } from "../support/redis-harness.ts";
import { type RedisSentinel, startRedisSentinel } from "../support/redis-sentinel.ts";
import {
  type RedisServer,
  startRedis,
  startRedisServers,
} from "../../tools/redis/redis-server.mjs";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { allKinds, type OpenClient } from "./client-kinds.ts";
import { sentinelLibraries } from "./sentinel-clients.ts";

const kinds = allKinds.flatMap(({ name, openConnecting, openConnectingCluster }) =>
  openConnecting && openConnectingCluster ? { name, openConnecting, openConnectingCluster } : [],
);

const nodeTimeoutMs = 100;
let servers: RedisServer[];
beforeAll(async () => {
  servers = await startRedisServers(3);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

function portOf(index: number): number {
  return servers[index]?.port ?? 0;
}

function closing(opened: OpenClient): RedisClient {
  onTestFinished(async () => {
    await opened.close();
  });
  return opened.client;
}

function managerOn(
  client: RedisClient | readonly RedisClient[],
  options: CreateLocksOptions = {},
  nodeTimeout = 10_000,
): Locks {
  const store = Array.isArray(client)
    ? redlock(client as readonly RedisClient[], { admission: "off", nodeTimeout })
    : redis(client as RedisClient, { admission: "off", nodeTimeout });
  const locks = createLocks(store, { ttl: "20s", ...options });
  onTestFinished(() => locks.close());
  return locks;
}

/** Returns the number of listeners for each event of a client. */
function listenersOf(client: object): Map<string | symbol, number> {
  const emitter = client as EventEmitter;
  const events = emitter.eventNames().filter((event) => emitter.listenerCount(event) > 0);
  return new Map(events.map((event) => [event, emitter.listenerCount(event)]));
}

/** Expects that the very first attempt is granted. */
async function expectGrantAtOnce(locks: Locks): Promise<void> {
  const attempts = collect(locks, "attempt");
  const lease = await locks.acquire("first", { wait: "10s" });
  expect(attempts.map(({ outcome }) => outcome)).toEqual(["granted"]);
  await lease.release();
}

describe.each(kinds)("$name", ({ openConnecting, openConnectingCluster }) => {
  test("a client that has just begun to connect can acquire a lock", async () => {
    const client = closing(openConnecting(portOf(0)));
    const before = listenersOf(client);
    const locks = managerOn(client);
    const lease = await locks.tryAcquire("first");
    expect(lease?.state).toBe("held");
    await lease?.release();
    // Left are a listener for broken connections of node-redis, and one that only looks at errors.
    const added = [...listenersOf(client)].filter(([event, count]) => before.get(event) !== count);
    const left = new Set<string | symbol>(["reconnecting", errorMonitor]);
    expect(added.filter(([event]) => !left.has(event))).toEqual([]);
  });

  test("calls that wait for the connection take one attempt", async () => {
    const locks = managerOn(closing(openConnecting(portOf(0))));
    await Promise.all([expectGrantAtOnce(locks), locks.inspect("other"), locks.list()]);
  });

  test("a server that is down fails the vote as soon as the client reports it", async () => {
    const down = await startRedis();
    onTestFinished(() => down.stop());
    await down.kill();
    // No timer fires, so only the report of the client can end the call.
    const locks = managerOn(closing(openConnecting(down.port)), { runtime: withoutTimers });
    const error = await rejection(locks.tryAcquire("x"));
    expect(error).toBeInstanceOf(QuorumError);
    expect(String((error as QuorumError).votes[0]?.cause)).toContain("ECONNREFUSED");
    // The client has failed once: from now on a vote fails at once.
    expect(await rejection(locks.tryAcquire("x"))).toBeInstanceOf(QuorumError);
  });

  test("a server that accepts and never answers costs the node timeout, once", async () => {
    const proxy = await startTcpProxy(portOf(0));
    proxy.mutesNew = true;
    const runtime = timersOnDemand();
    const locks = managerOn(closing(openConnecting(proxy.port)), { runtime }, nodeTimeoutMs);
    const failing = rejection(locks.tryAcquire("x"));
    await sleep(nodeTimeoutMs + 10);
    runtime.fire();
    const error = await failing;
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes[0]).toMatchObject({ vote: "failed" });
    // Nothing was sent, and the next call does not wait.
    expect(await rejection(locks.tryAcquire("x"))).toBeInstanceOf(QuorumError);
  });

  test("two of three nodes that connect decide, without the third", async () => {
    const proxy = await startTcpProxy(portOf(2));
    proxy.mutesNew = true;
    const ports = [portOf(0), portOf(1), proxy.port];
    const clients = ports.map((port) => closing(openConnecting(port)));
    const locks = managerOn(clients, { runtime: withoutTimers });
    expect((await locks.tryAcquire("quorum"))?.state).toBe("held");
    // Makes the third client fail, so that the release need not wait for it.
    proxy.accepts = false;
    proxy.reset();
  });

  test("a Cluster client that has just begun to connect can acquire a lock", async () => {
    const client = closing(openConnectingCluster(cluster.nodes.map(({ port }) => port)));
    await expectGrantAtOnce(managerOn(client));
  });
});

let cluster: RedisCluster;
let sentinel: RedisSentinel;
beforeAll(async () => {
  [cluster, sentinel] = await Promise.all([startRedisCluster(), startRedisSentinel()]);
});
afterAll(async () => {
  await Promise.all([cluster.stop(), sentinel.stop()]);
});

// The Sentinel client of node-redis 5 emits no event when it is ready.
test.each(sentinelLibraries.filter(({ name }) => name !== "node-redis 5"))(
  "$name: a client behind Sentinel that has just begun to connect can acquire a lock",
  async ({ open }) => {
    const opened = open(sentinel);
    opened.connect().catch(() => undefined);
    await expectGrantAtOnce(managerOn(closing(opened)));
  },
);

test.each(allKinds.filter(({ library }) => library === "ioredis"))(
  "$name: a lazy client begins to connect, and can acquire a lock",
  async ({ openIdle }) => {
    const opened = openIdle?.(portOf(0));
    if (opened !== undefined) await expectGrantAtOnce(managerOn(closing(opened)));
  },
);
