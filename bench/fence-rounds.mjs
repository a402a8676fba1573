// @ts-check
/**
 * Counts acquisitions that need the second round, because the nodes granted different fences.
 *
 *   node bench/fence-rounds.mjs [folder of the built package]     default: dist beside this folder
 *
 * Starts five servers. Every acquisition has its own resource, so no call waits for another. The
 * cases differ in the number of concurrent acquisitions, and in the number of processes.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RedisConnection } from "../tools/redis/redis-connection.mjs";
import { startRedisServers } from "../tools/redis/redis-server.mjs";

/** @typedef {{ ports: number[], inFlight: number, count: number, name: string }} Load */
/** @typedef {{ acquired: number, raised: number, failed: number, ms: number }} Result */

const isWorker = process.send !== undefined && process.argv[3] === "worker";
const folder = resolve(process.argv[2] ?? fileURLToPath(new URL("../dist", import.meta.url)));

if (isWorker) {
  const [load] = /** @type {[Load]} */ (/** @type {unknown} */ (await once(process, "message")));
  process.send?.(await run(load));
  process.disconnect();
} else {
  await main();
}

/**
 * @param {Load} load
 * @returns {Promise<Result>}
 */
async function run({ ports, inFlight, count, name }) {
  const load = (/** @type {string} */ path) => import(pathToFileURL(resolve(folder, path)).href);
  const { createLocks } = await load("index.js");
  const { redlock } = await load("stores/redis/index.js");
  const clients = await Promise.all(ports.map((port) => RedisConnection.open({ port })));
  const connections = clients.map((client) => ({
    library: "bench",
    topology: "standalone",
    send: (/** @type {string} */ _key, /** @type {string[]} */ command) => client.send(...command),
  }));
  const locks = createLocks(redlock(connections, { admission: "off" }), { ttl: "30s", wait: 0 });
  // Loads the scripts before the count begins.
  await (await locks.acquire(`${name}:warm-up`)).release();
  const result = { acquired: 0, raised: 0, failed: 0, ms: 0 };
  locks.on("fence-raised", () => {
    result.raised += 1;
  });
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      try {
        const lease = await locks.acquire(`${name}:${next}`);
        result.acquired += 1;
        await lease.release();
      } catch {
        result.failed += 1;
      }
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: inFlight }, worker));
  result.ms = performance.now() - began;
  await locks.close();
  for (const client of clients) client.close();
  return result;
}

async function main() {
  const servers = await startRedisServers(5);
  const ports = servers.map(({ port }) => port);
  const loads = [
    { what: "1 process, one after another", processes: 1, inFlight: 1, count: 5_000 },
    { what: "4 processes, one after another", processes: 4, inFlight: 1, count: 2_500 },
    { what: "1 process, 1000 in flight", processes: 1, inFlight: 1_000, count: 40_000 },
    { what: "4 processes, 1000 in flight together", processes: 4, inFlight: 250, count: 10_000 },
    { what: "4 processes, 1000 in flight each", processes: 4, inFlight: 1_000, count: 10_000 },
  ];
  console.log(
    "five nodes, distinct resources            acquired  second round    share   failed   per s",
  );
  for (const { what, processes, inFlight, count } of loads) {
    const results = await Promise.all(
      Array.from({ length: processes }, async (_, index) => {
        const child = fork(fileURLToPath(import.meta.url), [folder, "worker"]);
        child.send({ ports, inFlight, count, name: `${what} ${index}` });
        const [result] = await once(child, "message");
        return /** @type {Result} */ (result);
      }),
    );
    const sum = (/** @type {keyof Result} */ key) =>
      results.reduce((all, one) => all + one[key], 0);
    const share = `${((100 * sum("raised")) / sum("acquired")).toFixed(3)} %`;
    const slowest = Math.max(...results.map(({ ms }) => ms));
    const perSecond = ((1_000 * sum("acquired")) / slowest).toFixed(0);
    const columns = [
      what.padEnd(40),
      ...[sum("acquired"), sum("raised")].map((n) => String(n).padStart(10)),
    ];
    console.log(
      `${columns.join("")}  ${share.padStart(9)} ${String(sum("failed")).padStart(8)} ${perSecond.padStart(7)}`,
    );
  }
  await Promise.all(servers.map((server) => server.stop()));
}
