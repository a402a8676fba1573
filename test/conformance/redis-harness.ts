import { createLocks } from "../../src/index.ts";
import { redis, redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import type { ConformanceHarness } from "../../src/testing/index.ts";
import type { ClientKind, OpenClient } from "../clients/client-kinds.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

/** Opens a client of `kinds[i]` for `servers[i]`. Starts again with the first kind at the end. */
export function openClients(
  servers: readonly RedisServer[],
  kinds: readonly ClientKind[],
): Promise<OpenClient[]> {
  return Promise.all(
    servers.map(({ port }, index) => {
      const kind = kinds[index % kinds.length];
      if (kind === undefined) throw new Error("no kind of client was given");
      return kind.open(port);
    }),
  );
}

/**
 * Returns the harness on `clients`: the store for one server if there is one client, else the
 * quorum store.
 */
export function redisHarness(
  namespace: string,
  clients: readonly OpenClient[],
  options: RedisStoreOptions = {},
): ConformanceHarness {
  const given = clients.map(({ client }) => client);
  // Many cases run on few cores, and no case tests how soon a node must answer.
  const resolved: RedisStoreOptions = { nodeTimeout: "5s", ...options };
  const [only] = given;
  const make = () =>
    given.length === 1 && only !== undefined ? redis(only, resolved) : redlock(given, resolved);
  const { capabilities, maxTtlMs } = make();
  return {
    // A store for each manager, so that managers share the servers and nothing in this process.
    open: async (defaults) => createLocks(make(), defaults),
    capabilities,
    maxTtlMs,
    namespace,
    shortTtlMs: 1_000,
    servesInOrder: true,
  };
}

/** Returns the keys on the servers, apart from those that are meant to stay. */
export async function keysLeft(servers: readonly RedisServer[]): Promise<string[]> {
  const found = await Promise.all(servers.map((server) => server.command("KEYS", "*")));
  const keys = found.flatMap((reply) => reply as string[]);
  // The node's own record: whether it may vote, and the counters for its fences.
  return keys.filter((key) => key !== "holdfast:node");
}
