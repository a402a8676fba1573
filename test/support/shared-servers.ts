import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startRedisServers } from "../../tools/redis/redis-server.mjs";

/**
 * Starts `count` servers for the file that calls it, without a watch on what its tests leave
 * behind. The list is filled before the first test. `shareRedis` has such a watch.
 */
export function shareServers(count: number): readonly RedisServer[] {
  const servers: RedisServer[] = [];
  beforeAll(async () => {
    servers.push(...(await startRedisServers(count)));
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
  });
  return servers;
}
