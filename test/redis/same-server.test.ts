import { describe, expect, onTestFinished, test } from "vitest";
import { InvalidOptionError, type Lease, type Locks, QuorumError } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { type ClientKind, ioredisKinds, nodeRedisKinds } from "../clients/client-kinds.ts";
import { admit, maxTtl } from "../admission/strict-locks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

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
  const clients = opened.map(({ client }) => client as object);
  if (store.admission === "strict") await Promise.all(bench.servers.map((each) => admit(each)));
  const locks = openLocks(clients, { nodeTimeout: "2s", ...store }, { ttl });
  return { locks, clients, proxies };
}

/** Redirects the node to another server, and waits until its client is connected again. */
async function leadTo(server: number, proxy: TcpProxy, client: object): Promise<void> {
  const before = proxy.connectionCount;
  proxy.target = bench.server(server).port;
  proxy.reset();
  const state = client as { status?: string; isReady?: boolean };
  const isConnected = () => state.status === "ready" || state.isReady === true;
  await eventually(() => proxy.connectionCount > before && isConnected());
}

/** Resolves with the error once a call is refused. Other servers may decide a few calls before. */
async function untilRefused(locks: Locks): Promise<string> {
  const error = await eventually(async () => {
    const outcome = await locks.acquire(key, { wait: "30s" }).catch((e: unknown) => e);
    if (outcome instanceof Error) return outcome;
    await (outcome as Lease).release();
    return false;
  });
  expect(error).toBeInstanceOf(InvalidOptionError);
  await bench.untilFree();
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

test("an extension does not count one server for two nodes", async () => {
  if (ioredis === undefined) throw new Error("no client");
  const { locks, clients, proxies } = await openThrough(ioredis, [0, 1, 2], {});
  const lease = await locks.acquire(key, { ttl: "20s", renew: false });
  await bench.valuesEverywhere(key);
  const [, proxy] = proxies;
  const [, client] = clients;
  if (proxy === undefined || client === undefined) throw new Error("no second node");
  await leadTo(0, proxy, client);
  const error = await rejection(lease.extend());
  expect(error).toBeInstanceOf(QuorumError);
  expect((error as QuorumError).cause).toBeInstanceOf(InvalidOptionError);
  expect(lease.state).toBe("doubtful");
  await leadTo(1, proxy, client);
  await lease.extend();
  // If a survey reports the replaced server during the extension, one more check resolves the
  // doubt.
  await eventually(() => lease.state === "held");
  await lease.release();
  await bench.untilFree();
});
