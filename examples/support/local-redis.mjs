import { startRedisServers } from "../../tools/redis/redis-server.mjs";

/**
 * Returns the addresses of `count` Redis servers for an example: those of `REDIS_URL` (separated by
 * commas), or temporary servers if `redis-server` is installed. `stop` ends the temporary ones.
 *
 * @param {number} count
 * @returns {Promise<{ urls: string[], stop: () => Promise<void> }>}
 */
export async function redisServers(count) {
  const given = process.env["REDIS_URL"]?.split(",") ?? [];
  if (given.length >= count) return { urls: given.slice(0, count), stop: async () => {} };
  try {
    const servers = await startRedisServers(count);
    return {
      urls: servers.map(({ url }) => url),
      stop: async () => void (await Promise.all(servers.map((server) => server.stop()))),
    };
  } catch (error) {
    console.error(
      `This example needs ${count} Redis servers. Install redis-server, or set REDIS_URL to ` +
        "addresses separated by commas, such as redis://one,redis://two,redis://three",
    );
    console.error(error instanceof Error ? error.message : error);
    return process.exit(1);
  }
}
