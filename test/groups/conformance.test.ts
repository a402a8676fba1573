import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { type GroupsOptions, redlockGroups } from "../../src/stores/redis/index.ts";
import type { ConformanceHarness } from "../../src/testing/index.ts";
import { ioredisKinds, nodeRedisKinds, type OpenClient } from "../clients/client-kinds.ts";
import { keysLeft, openClients } from "../conformance/redis-harness.ts";
import { sideBySide } from "../conformance/run-suite.ts";
import { type RedisServer, startRedisServers } from "../../tools/redis/redis-server.mjs";

let servers: RedisServer[] = [];
let clients: OpenClient[] = [];

beforeAll(async () => {
  servers = await startRedisServers(6);
  clients = await openClients(servers, [...ioredisKinds.slice(0, 2), ...nodeRedisKinds]);
});

afterAll(async () => {
  await Promise.all(clients.map((opened) => opened.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

function harness(namespace: string, prefix: string): ConformanceHarness {
  const given = clients.map(({ client }) => client);
  const options: GroupsOptions = { admission: "off", nodeTimeout: "5s", prefix };
  const make = () => redlockGroups([given.slice(0, 3), given.slice(3)], options);
  const { capabilities, maxTtlMs } = make();
  const open: ConformanceHarness["open"] = async (defaults) => createLocks(make(), defaults);
  return {
    shortTtlMs: 1_500,
    open,
    capabilities,
    maxTtlMs,
    namespace,
  };
}

sideBySide({
  // The names of one case share a hash tag, so they are in one group …
  "two groups of 3 Redis, each case in one group": () => harness("together", ""),
  // … unless an empty tag in front makes it no tag.
  "two groups of 3 Redis, each name by itself": () => harness("apart", "{}"),
});

test("no case leaves a key on any server", async () => {
  expect(await keysLeft(servers)).toEqual([]);
});
