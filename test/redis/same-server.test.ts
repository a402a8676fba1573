import { describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import {
  InvalidOptionError,
  type Lease,
  type Locks,
  QuorumError,
  StoreError,
} from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { type ClientKind, ioredisKinds, nodeRedisKinds } from "../clients/client-kinds.ts";
import { admit, maxTtl } from "../admission/strict-locks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { startTcpProxy, type WatchingProxy } from "../support/tcp-proxy.ts";

const bench = shareRedis(3);
const key = "invoice:42";
const ttl = 900;

/** Opens three nodes, each behind a proxy to the server with the given number. */
async function openThrough(kind: ClientKind, servers: readonly number[], store: RedisStoreOptions) {
  const proxies = await Promise.all(servers.map((n) => startTcpProxy(bench.server(n).port)));
  const opened = await Promise.all(proxies.map(({ port }) => kind.open(port)));
  onTestFinished(() => {
    for (const each of opened) each.close();
  });
  const clients = opened.map(({ client }) => client);
  if (store.admission === "strict") await Promise.all(bench.servers.map((each) => admit(each)));
  const locks = openLocks(clients, { nodeTimeout: "2s", ...store }, { ttl });
  return { locks, clients, proxies };
}

/** Redirects the node to another server, and waits until its client is connected again. */
async function leadTo(server: number, proxy: WatchingProxy, client: RedisClient): Promise<void> {
  const before = proxy.connectionCount;
  proxy.target = bench.server(server).port;
  proxy.reset();
  const state = client as { status?: string; isReady?: boolean };
  const isConnected = () => state.status === "ready" || state.isReady === true;
  await eventually(() => proxy.connectionCount > before && isConnected());
}

/** Resolves with the error once a call is refused. Other servers may decide a few calls before. */
async function untilRefused(locks: Locks, name = key): Promise<string> {
  const error = await eventually(async () => {
    const outcome = await locks.acquire(name, { wait: "30s" }).catch((e: unknown) => e);
    if (outcome instanceof Error) return outcome;
    await (outcome as Lease).release();
    return false;
  });
  expect(error).toBeInstanceOf(InvalidOptionError);
  for (const server of bench.servers) {
    await eventually(async () => (await server.command("EXISTS", name)) === 0);
  }
  return String(error);
}

async function untilAcquired(locks: Locks): Promise<void> {
  await eventually(async () => {
    await (await locks.acquire(key, { wait: 0 })).release();
  });
  await bench.untilFree();
}

const modes = [
  { mode: "with fences", store: {} },
  { mode: "without fences", store: { fencing: false } },
  { mode: "with admission", store: { admission: "strict", maxTtl } },
] as const;
const [ioredis] = ioredisKinds;
const [, nodeRedis] = nodeRedisKinds;
const kinds = [ioredis, nodeRedis].flatMap((kind) => kind ?? []);
const setUps = kinds.flatMap((kind) => modes.map((mode) => ({ ...mode, kind, name: kind.name })));

describe.each(setUps)("$name, $mode", ({ kind, store }) => {
  test("an address that was wrong at first can be corrected", async () => {
    const { locks, clients, proxies } = await openThrough(kind, [0, 0, 2], store);
    const error = await untilRefused(locks);
    expect(error).toContain("the same server twice, as node-1 and node-2");
    // While the address is wrong, each call is refused.
    expect(await untilRefused(locks)).toBe(error);
    const [, proxy] = proxies;
    const [, client] = clients;
    if (proxy === undefined || client === undefined) throw new Error("no second node");
    await leadTo(1, proxy, client);
    await untilAcquired(locks);
    await leadTo(0, proxy, client);
    await untilRefused(locks);
  });

  test("an address that becomes wrong is noticed", async () => {
    const { locks, clients, proxies } = await openThrough(kind, [0, 1, 2], store);
    await untilAcquired(locks);
    const [, proxy] = proxies;
    const [, client] = clients;
    if (proxy === undefined || client === undefined) throw new Error("no second node");
    await leadTo(0, proxy, client);
    expect(await untilRefused(locks)).toMatch(/the same server twice, as node-[12] and node-[12]/);
    await leadTo(1, proxy, client);
    await untilAcquired(locks);
  });
});

/** Returns the second node's proxy and client, and three nodes on their own servers. */
async function openThree() {
  if (ioredis === undefined) throw new Error("no client");
  const { locks, clients, proxies } = await openThrough(ioredis, [0, 1, 2], {});
  const [, proxy] = proxies;
  const [, client] = clients;
  if (proxy === undefined || client === undefined) throw new Error("no second node");
  const lead = (server: number): Promise<void> => leadTo(server, proxy, client);
  const acquire = async (name: string, renew: false | number): Promise<Lease> => {
    const lease = await locks.acquire(name, { ttl: "20s", renew });
    await bench.valuesEverywhere(name);
    return lease;
  };
  return { lead, acquire, locks, proxy };
}

/** Extends the lease. If a survey reports the replaced server meanwhile, the lease is checked. */
async function extended(lease: Lease): Promise<void> {
  await eventually(async () => {
    const error = await lease.extend().catch((reason: unknown) => reason);
    if (error !== undefined) expect(error).toBeInstanceOf(StoreError);
    return error === undefined;
  });
}

/**
 * Waits until the doubt is over that a survey may raise: it reports the replaced server after the
 * extension.
 */
async function releaseHeld(...leases: readonly Lease[]): Promise<void> {
  for (const lease of leases) {
    await eventually(() => lease.state === "held");
    await lease.release();
  }
  await bench.untilFree();
}

describe("while two nodes are one server", () => {
  test("an extension counts that server once if it has the lock", async () => {
    const { lead, acquire } = await openThree();
    const lease = await acquire(key, false);
    await lead(0);
    await bench.freeByForeigner([2], key);
    const error = await rejection(lease.extend());
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).cause).toBeInstanceOf(InvalidOptionError);
    expect(lease.state).toBe("doubtful");
    await lead(1);
    await extended(lease);
    await releaseHeld(lease);
  });

  test("an extension counts that server once if it lacks the lock", async () => {
    const { lead, acquire } = await openThree();
    const lease = await acquire(key, false);
    await lead(0);
    await bench.freeByForeigner([0], key);
    expect(await rejection(lease.extend())).toBeInstanceOf(QuorumError);
    expect(lease.state).toBe("doubtful");
    await lead(1);
    await extended(lease);
    await releaseHeld(lease);
  });

  test("a majority of different servers extends and proves a lease", async () => {
    const { lead, acquire, locks } = await openThree();
    const lease = await acquire(key, false);
    await lead(0);
    await untilRefused(locks, "other");
    await extended(lease);
    await eventually(() => lease.prove());
    await lead(1);
    await releaseHeld(lease);
  });

  test("leases that are renewed together stay held, and one that a majority lacks does not", async () => {
    const { lead, acquire, locks } = await openThree();
    const names = ["a", "b", "c"];
    const leases = await Promise.all(names.map((name) => acquire(name, 200)));
    await lead(0);
    await untilRefused(locks, "other");
    await bench.freeByForeigner([2], "b");
    await eventually(() => leases[1]?.state === "doubtful");
    const renewals = { a: 0, c: 0 };
    locks.on("renewed", ({ resources: [name] }) => {
      if (name === "a" || name === "c") renewals[name] += 1;
    });
    await eventually(() => renewals.a >= 2 && renewals.c >= 2);
    expect(leases.map(({ state }) => state)).toEqual(["held", "doubtful", "held"]);
    await lead(1);
    await releaseHeld(...leases);
  });

  test.each(["pass", "hold"] as const)(
    "an extension counts one vote of that server while the second node's replies %s",
    async (replies) => {
      const { lead, acquire, locks, proxy } = await openThree();
      const lease = await acquire(key, false);
      await lead(0);
      await untilRefused(locks, "other");
      proxy.replies = replies;
      await extended(lease);
      proxy.replies = "pass";
      await locks.inspect("other");
      await eventually(() => lease.state === "held");
      // Without the third server's vote, one server is left, and the lease is doubtful.
      await bench.server(2).restart({ empty: true });
      await eventually(async () => {
        await locks.inspect("other");
        return lease.state === "doubtful";
      });
      await lead(1);
      await releaseHeld(lease);
    },
  );
});
