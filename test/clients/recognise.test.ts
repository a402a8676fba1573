import { createClient, createClientPool } from "redis";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
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
