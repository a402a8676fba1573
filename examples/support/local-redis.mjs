import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

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
  const servers = await Promise.all(Array.from({ length: count }, () => start(count)));
  return {
    urls: servers.map(({ url }) => url),
    stop: async () => void (await Promise.all(servers.map(({ stop }) => stop()))),
  };
}

/** @param {number} count */
async function start(count) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-example-redis-"));
  const port = await freePort();
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", ""];
  const child = spawn("redis-server", args, { stdio: "ignore" });
  const remove = () => {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", remove); // also when the example fails
  const exited = once(child, "exit").catch(() => {
    console.error(
      `This example needs ${count} Redis servers. Install redis-server, or set REDIS_URL to ` +
        "addresses separated by commas, such as redis://one,redis://two,redis://three",
    );
    process.exit(1);
  });
  const url = `redis://127.0.0.1:${port}`;
  await answers(url);
  return {
    url,
    stop: async () => {
      child.kill();
      await exited;
      process.removeListener("exit", remove);
      remove();
    },
  };
}

/** @param {string} url */
async function answers(url) {
  const client = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on("error", () => {});
  await Promise.race([client.ping(), sleep(10_000, undefined, { ref: false })]);
  client.disconnect();
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
