import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis, redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import {
  startRedis,
  startRedisServers,
  type RedisServer,
} from "../../tools/redis/redis-server.mjs";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
watchLeaks();

async function client(port: number, options: object = {}): Promise<Redis> {
  const opened = new Redis({ port, enableOfflineQueue: false, ...options });
  opened.on("error", () => undefined);
  onTestFinished(() => opened.disconnect());
  await eventually(() => opened.status === "ready");
  return opened;
}

async function open(
  servers: readonly RedisServer[],
  options: RedisStoreOptions & { keyPrefix?: string } = {},
): Promise<Locks> {
  const { keyPrefix = "", ...store } = options;
  const clients = await Promise.all(servers.map(({ port }) => client(port, { keyPrefix })));
  const [only] = clients;
  const locks = createLocks(
    clients.length === 1 && only !== undefined
      ? redis(only, store)
      : redlock(clients, { admission: "off", ...store }),
  );
  onTestFinished(() => locks.close());
  return locks;
}

const namesOf = async (locks: Locks): Promise<string[]> =>
  (await locks.list()).map(({ resource }) => resource);

describe("list", () => {
  test("shows locks of Holdfast, and none of the other keys", async () => {
    const locks = await open([server]);
    const plain = await open([server], { fencing: false });
    for (let first = 0; first < 3_000; first += 500) {
      const pairs = Array.from({ length: 500 }, (_, index) => [`data:${first + index}`, "value"]);
      await server.command("MSET", ...pairs.flat());
    }
    await server.command("HSET", "hash", "field", "value");
    await server.command(
      "SET",
      "foreign",
      "0123456789abcdef0123456789abcdef01234567",
      "PX",
      "9999",
    );
    // A key and a value that look like a reply with the server's clock.
    await server.command("SET", "G 1 2 0123456789ab", "G 1 2 0123456789ab 5");
    const held = [await locks.acquire("one"), await plain.acquire("two")];
    expect(await namesOf(locks)).toEqual(["one", "two"]);
    await Promise.all(held.map((lease) => lease.release()));
    expect(await namesOf(locks)).toEqual([]);
    await server.command("FLUSHALL");
  });

  test("is limited to its prefix, and to that of the client", async () => {
    const all = await open([server]);
    const store = await open([server], { prefix: "store[1]*:" });
    const both = await open([server], { prefix: "store:", keyPrefix: "client?:" });
    const held = [
      await store.acquire("in-store"),
      await both.acquire("in-both"),
      await all.acquire("store1x:decoy"),
    ];
    expect(await namesOf(store)).toEqual(["in-store"]);
    expect(await namesOf(both)).toEqual(["in-both"]);
    expect(await both.list()).toMatchObject([{ state: "held", fence: held[1]?.fence }]);
    expect(await namesOf(all)).toEqual([
      "client?:store:in-both",
      "store1x:decoy",
      "store[1]*:in-store",
    ]);
    await Promise.all(held.map((lease) => lease.release()));
  });

  test("needs a quorum of the servers, and merges their lists", async () => {
    const servers = await startRedisServers(3);
    onTestFinished(async () => {
      await Promise.all(servers.map((one) => one.stop()));
    });
    const locks = await open(servers);
    const lease = await locks.acquire("r", { ttl: "20s" });
    // A lock on a single server is not held by any lease, but not free either.
    const value = String(await servers[0]?.command("GET", "r"));
    await servers[0]?.command("SET", "left", value, "PX", "20000");
    const states = (await locks.list()).map(({ resource, state }) => [resource, state]);
    expect(states).toEqual([["r", "held"]]);
    await servers[2]?.kill();
    expect(await locks.list()).toMatchObject([
      { resource: "left", state: "split" },
      { resource: "r", state: "held", fence: lease.fence },
    ]);
    await servers[1]?.kill();
    await expect(locks.list()).rejects.toMatchObject({ code: "QUORUM" });
  });

  test("rejects on a Cluster with an error that says why", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const { Cluster } = await import("ioredis");
    const opened = new Cluster([{ port: cluster.nodes[0]?.port ?? 0, host: "127.0.0.1" }]);
    onTestFinished(() => opened.disconnect());
    await eventually(() => opened.status === "ready");
    const locks = createLocks(redis(opened));
    onTestFinished(() => locks.close());
    const lease = await locks.acquire("r");
    await expect(locks.list()).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(await locks.break("r")).toMatchObject({ broken: true });
    expect(await lease.prove()).toBe(false);
  });
});

describe("break", () => {
  test("works without a minority of the servers, and not without a majority", async () => {
    const servers = await startRedisServers(3);
    onTestFinished(async () => {
      await Promise.all(servers.map((one) => one.stop()));
    });
    const locks = await open(servers);
    const lease = await locks.acquire("r", { ttl: "20s" });
    await servers[2]?.kill();
    const outcome = await locks.break("r");
    expect(outcome).toMatchObject({ broken: true, holders: [{ fence: lease.fence }] });
    await lease.extend().catch(() => undefined);
    expect(lease.state).toBe("lost");
    const second = await locks.acquire("r", { ttl: "20s" });
    const seen = await locks.inspect("r");
    await servers[1]?.kill();
    await expect(locks.break(seen)).rejects.toMatchObject({ code: "QUORUM" });
    await expect(locks.break("unknown-name")).rejects.toMatchObject({ code: "STORE" });
    expect(second.state).toBe("held");
  });

  test("of one resource of several ends the whole lease", async () => {
    const locks = await open([server]);
    const lease = await locks.acquire(["a", "b"], { ttl: "20s" });
    expect(await locks.break("a")).toMatchObject({ broken: true });
    await lease.extend().catch(() => undefined);
    expect(lease.state).toBe("lost");
    await lease.release();
    expect(await namesOf(locks)).toEqual([]);
  });

  test("deletes a foreign client's lock on request", async () => {
    const locks = await open([server]);
    await server.command("SET", "r", "foreign-value", "PX", "20000");
    const outcome = await locks.break("r", { foreign: true });
    expect(outcome).toMatchObject({ broken: true, holders: [{ owner: "foreign-value" }] });
    expect(await server.command("EXISTS", "r")).toBe(0);
  });

  test("draws a fence even if the holder had waited and is still in the queue", async () => {
    const [ours, theirs] = [await open([server]), await open([server])];
    const first = await ours.acquire("r");
    const waiting = theirs.acquire("r", { wait: "20s" });
    await eventually(async () => (await ours.inspect("r")).waiters === 1);
    await first.release();
    const second = await waiting;
    const outcome = await ours.break("r");
    expect(outcome.broken && (outcome.fence ?? 0n) > second.fence).toBe(true);
    expect(await second.release()).toEqual({ released: false, reason: "taken" });
    expect((await ours.inspect("r")).state).toBe("free");
    await server.command("FLUSHALL");
  });
});
