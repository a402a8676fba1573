import type { GlideClient, GlideClusterClient } from "@valkey/valkey-glide";
import { type Cluster, Redis } from "ioredis";
import type * as ioredis6 from "ioredis6";
import type * as iovalkey from "iovalkey";
import { createClient, createClientPool } from "redis";
import type * as redis6 from "redis";
import type * as redis5 from "redis5";
import { expect, expectTypeOf, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { connectionOf } from "../../src/clients/recognise.ts";

test.each([
  ["undefined", undefined],
  ["null", null],
  ["a string", "redis://127.0.0.1"],
  ["an empty object", {}],
  ["a map", new Map()],
  ["a function", () => undefined],
  ["an array", []],
  ["something that only has a status", { status: "ready" }],
  ["something that only sends commands", { sendCommand() {}, isReady: true }],
  ["something that only sends", { send() {} }],
  ["an unknown topology", { send() {}, library: "x", topology: "ring" }],
])("%s is not recognised as a client", (_, value) => {
  expect(connectionOf(value)).toBeUndefined();
});

test("a pipeline or a pool is not recognised as a client, because both hold commands back", async () => {
  const client = new Redis({ lazyConnect: true });
  expect(connectionOf(client.pipeline())).toBeUndefined();
  expect(connectionOf(client.multi())).toBeUndefined();
  expect(connectionOf(createClientPool())).toBeUndefined();
  expect(connectionOf(createClient().multi())).toBeUndefined();
});

test("a RedisConnection is used as it is", () => {
  const connection = {
    library: "of my own",
    topology: "standalone",
    send: async () => "OK",
  };
  expect(connectionOf(connection)).toBe(connection);
});

test("a subclass, a proxy and a client of another copy of the library are recognised", () => {
  class Extended extends Redis {}
  const client = new Extended({ lazyConnect: true });
  expect(connectionOf(client)?.library).toBe("ioredis");
  expect(connectionOf(new Proxy(client, {}))?.library).toBe("ioredis");
  const copy = Object.setPrototypeOf({}, createClient()) as object;
  expect(connectionOf(copy)?.library).toBe("node-redis");
});

test("recognising a client opens no connection", () => {
  const client = new Redis({ lazyConnect: true });
  connectionOf(client);
  expect(client.status).toBe("wait");
});

test("the type of a client accepts every supported one, and neither a pool nor an address", () => {
  expectTypeOf<Redis | ioredis6.Redis | iovalkey.Redis>().toExtend<RedisClient>();
  expectTypeOf<Cluster | ioredis6.Cluster | iovalkey.Cluster>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis6.createClient>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis5.createClient>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis6.createCluster>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis5.createCluster>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis6.createSentinel>>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis5.createSentinel>>().toExtend<RedisClient>();
  expectTypeOf<GlideClient | GlideClusterClient>().toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis6.createClientPool>>().not.toExtend<RedisClient>();
  expectTypeOf<ReturnType<typeof redis5.createClientPool>>().not.toExtend<RedisClient>();
  expectTypeOf<string | Map<string, string>>().not.toExtend<RedisClient>();
});
