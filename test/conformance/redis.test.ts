import { afterAll, beforeAll, expect, test } from "vitest";
import type { ConformanceHarness } from "../../src/testing/index.ts";
import { allKinds, type OpenClient } from "../clients/client-kinds.ts";
import { type RedisServer, startRedisServers } from "../../tools/redis/redis-server.mjs";
import { keysLeft, openClients, redisHarness } from "./redis-harness.ts";
import { sideBySide } from "./run-suite.ts";

let servers: RedisServer[] = [];
const clients = new Map<string, OpenClient[]>();

beforeAll(async () => {
  servers = await startRedisServers(5);
  for (const kind of allKinds) clients.set(kind.name, await openClients(servers, [kind]));
  clients.set("mixed", await openClients(servers, allKinds.toReversed()));
});

afterAll(async () => {
  await Promise.all([...clients.values()].flat().map((opened) => opened.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

function harness(name: string, count: number, fencing: boolean): () => ConformanceHarness {
  const namespace = `${name.replaceAll(" ", "-")}-${count}-${fencing ? "fenced" : "plain"}`;
  const options = { fencing, admission: "off" } as const;
  return () => redisHarness(namespace, (clients.get(name) ?? []).slice(0, count), options);
}

const harnesses: Record<string, () => ConformanceHarness> = {
  "a different client for each of 5 Redis": harness("mixed", 5, true),
};
for (const { name } of allKinds) {
  for (const count of [1, 3, 5]) {
    harnesses[`${name} on ${count} Redis`] = harness(name, count, true);
    harnesses[`${name} on ${count} Redis without fences`] = harness(name, count, false);
  }
}
sideBySide(harnesses);

test("no case leaves a key on any server", async () => {
  expect(await keysLeft(servers)).toEqual([]);
});
