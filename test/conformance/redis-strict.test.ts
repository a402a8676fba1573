import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { ioredisKinds, nodeRedisKinds, type OpenClient } from "../clients/client-kinds.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedisServers } from "../../tools/redis/redis-server.mjs";
import { keysLeft, openClients, redisHarness } from "./redis-harness.ts";
import { sideBySide } from "./run-suite.ts";

// A server that has just started is admitted after maxTtl, so this file waits that long.
const options: RedisStoreOptions = { admission: "strict", maxTtl: "5s" };

let servers: RedisServer[] = [];
let clients: OpenClient[] = [];

beforeAll(async () => {
  servers = await startRedisServers(3);
  clients = await openClients(servers, [...ioredisKinds.slice(0, 2), ...nodeRedisKinds]);
  const locks = createLocks(
    redlock(
      clients.map(({ client }) => client),
      options,
    ),
  );
  await eventually(async () => {
    const nodes = await locks.nodes();
    return nodes.every(({ admission }) => admission === "admitted");
  });
  await locks.close();
});

afterAll(async () => {
  await Promise.all(clients.map((opened) => opened.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

sideBySide({
  "3 Redis of which only admitted ones vote": () => redisHarness("strict", clients, options),
});

test("no case leaves a key on any server", async () => {
  expect(await keysLeft(servers)).toEqual([]);
});
