import { hostname } from "node:os";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../tools/network/free-port.mjs";
import { startRedis, startRedisServers } from "../../tools/redis/redis-server.mjs";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis, redlock, type RedisClient } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";

watchLeaks();

function open(store: Parameters<typeof createLocks>[0]): Locks {
  const locks = createLocks(store, { wait: 0 });
  onTestFinished(() => locks.close());
  return locks;
}

function ioredisAt(url: string): Redis {
  const client = new Redis(url, { retryStrategy: () => 20 });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  return client;
}

function nodeRedisAt(url: string): RedisClient {
  const client = createClient({ url, socket: { reconnectStrategy: 20 } });
  client.on("error", () => undefined);
  client.connect().catch(() => undefined);
  onTestFinished(() => client.destroy());
  return client;
}

async function messageOf(call: Promise<unknown>): Promise<string> {
  return await call.then(
    () => "no error",
    (error: unknown) => (error as Error).message,
  );
}

const clients = { ioredis: ioredisAt, "node-redis": nodeRedisAt };

describe.each(Object.entries(clients))("with %s, an error", (_library, at) => {
  test("says which server cannot be reached, and why", async () => {
    const port = await freePort();
    const locks = open(redis(at(`redis://user:hidden@127.0.0.1:${port}/0`)));
    for (const call of [() => locks.acquire("r"), () => locks.acquire("r")]) {
      const message = await messageOf(call());
      expect(message).toContain(`could not acquire "r": 127.0.0.1:${port}: `);
      expect(message).toContain("ECONNREFUSED");
      expect(message).not.toContain("hidden");
      expect(message).not.toContain("of 1");
    }
    const listed = await messageOf(locks.list());
    expect(listed).toContain(`could not list the locks: 127.0.0.1:${port}: `);
    expect(listed).toContain("ECONNREFUSED");
  });

  test("says that the password is wrong", async () => {
    const server = await startRedis({ args: ["--requirepass", "right"] });
    onTestFinished(() => server.stop());
    const locks = open(redis(at(`redis://:wrong@127.0.0.1:${server.port}`)));
    await messageOf(locks.acquire("r"));
    const message = await messageOf(locks.acquire("r"));
    expect(message).toMatch(/WRONGPASS|NOAUTH/);
    expect(message).not.toContain("wrong@");
  });
});

test("nodes of a quorum are named by their addresses, in errors, events and findings", async () => {
  const servers = await startRedisServers(3);
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  const nodes = addresses.map((address) => ioredisAt(`redis://${address}`));
  const locks = open(redlock(nodes, { admission: "off" }));
  const failed: string[] = [];
  locks.on("node-failed", ({ node }) => failed.push(node));
  await locks.using("r", () => undefined);
  expect((await locks.nodes()).map(({ node }) => node)).toEqual(addresses);
  await Promise.all(servers.slice(1).map((server) => server.kill()));
  const message = await messageOf(locks.acquire("r"));
  expect(message).toContain('could not acquire "r": needs 2 of 3 nodes; ');
  for (const address of addresses) expect(message).toContain(`${address}: `);
  expect(failed.toSorted()).toEqual(addresses.slice(1).toSorted());
  const findings = await locks.doctor();
  expect(findings.find(({ code }) => code === "unreachable")?.node).toBe(addresses[1]);
});

test("a lease has a default label, which others see", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const client = ioredisAt(server.url);
  const locks = open(redis(client));
  const label = `${hostname()}:${process.pid}`;
  expect((await locks.acquire("r")).label).toBe(label);
  expect((await locks.inspect("r")).label).toBe(label);
  expect(await messageOf(locks.acquire("r"))).toContain(`label "${label}"`);
  const own = createLocks(redis(client), { label: "nightly" });
  expect((await own.acquire("s")).label).toBe("nightly");
  await own.close();
  const none = createLocks(redis(client), { label: "" });
  await none.acquire("t");
  expect((await none.inspect("t")).label).toBeUndefined();
  await none.close();
});
