import { Redis as Redis5 } from "ioredis";
import { Redis as Redis6 } from "ioredis6";
import { Redis as Valkey } from "iovalkey";
import { createSentinel as createSentinel6 } from "redis";
import { createSentinel as createSentinel5 } from "redis5";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisSentinel, startRedisSentinel } from "../support/redis-sentinel.ts";
import type { OpenClient } from "./client-kinds.ts";
import { adapt } from "./open-connection.ts";

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startRedisSentinel();
});
afterAll(() => sentinel.stop());

type OpenSentinelClient = () => OpenClient & { connect(): Promise<unknown> };

function viaIoredis(Redis: typeof Redis5 | typeof Redis6 | typeof Valkey): OpenSentinelClient {
  const Client = Redis as typeof Redis5;
  return () => {
    const client = new Client({
      sentinels: [...sentinel.sentinels],
      name: sentinel.name,
      retryStrategy: () => 50,
      lazyConnect: true,
    });
    client.on("error", () => undefined);
    return { client, connect: () => client.connect(), close: () => client.disconnect() };
  };
}

function viaNodeRedis(create: typeof createSentinel5 | typeof createSentinel6): OpenSentinelClient {
  const createOne = create as typeof createSentinel6;
  return () => {
    const client = createOne({
      name: sentinel.name,
      sentinelRootNodes: [...sentinel.sentinels],
      scanInterval: 100,
      nodeClientOptions: { socket: { reconnectStrategy: 50 } },
    });
    client.on("error", () => undefined);
    return { client, connect: () => client.connect(), close: () => client.destroy() };
  };
}

const libraries: readonly (readonly [string, OpenSentinelClient])[] = [
  ["ioredis 5", viaIoredis(Redis5)],
  ["ioredis 6", viaIoredis(Redis6)],
  ["iovalkey", viaIoredis(Valkey)],
  ["node-redis 5", viaNodeRedis(createSentinel5)],
  ["node-redis 6", viaNodeRedis(createSentinel6)],
];

test.each(libraries)("serves the master through %s", async (name, open) => {
  const opened = open();
  const connection = adapt(opened);
  expect(connection.topology).toBe("standalone");
  await expect(connection.send("k", ["SET", "early", "x"])).rejects.toThrow(NotConnectedError);
  await opened.connect().catch(() => undefined);
  await eventually(() => connection.send("k", ["PING"]));
  expect(await connection.send(name, ["SET", name, "v", "NX", "GET"])).toBeNull();
  expect(
    await connection.send(name, ["EVAL", "return redis.call('GET', KEYS[1])", "1", name]),
  ).toBe("v");
  expect(await sentinel.master.command("EXISTS", "early")).toBe(0);
  if (name === "node-redis 5") {
    // Its Sentinel client cannot be duplicated.
    expect(connection).not.toHaveProperty("subscribe");
    return;
  }
  const heard: string[] = [];
  const leave = await connection.subscribe("channel", (message) => heard.push(message));
  await sentinel.master.command("PUBLISH", "channel", "hello");
  await eventually(() => heard.length > 0);
  expect(heard).toEqual(["hello"]);
  await leave();
});

test("follows a failover through every library", async () => {
  const opened = libraries.map(([, open]) => open());
  const connections = opened.map((client) => adapt(client));
  await Promise.all(opened.map((client) => client.connect()));
  await sentinel.master.kill();
  await eventually(async () => (await sentinel.masterPort()) === sentinel.replica.port);
  await Promise.all(
    connections.map((connection, index) =>
      eventually(async () => {
        await connection.send("k", ["SET", `after-${index}`, "x"]);
        return (await sentinel.replica.command("EXISTS", `after-${index}`)) === 1;
      }),
    ),
  );
});
