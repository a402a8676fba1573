// @ts-check
/**
 * A process with a schedule. Started with the folder of a build of the library, the ports of the
 * lock servers, the port of the ledger, the time between ticks, and the error of its clock in ms.
 * Each run counts itself in the ledger's server before anything else.
 */
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";

const [build = "", ports = "", ledgerPort = "", every = "", skew = ""] = process.argv.slice(2);
const { createLocks } = await import(pathToFileURL(`${build}/index.js`).href);
const { redlock } = await import(pathToFileURL(`${build}/stores/redis/index.js`).href);
const { redisLedger, schedule } = await import(pathToFileURL(`${build}/schedule/index.js`).href);
const { nodeRuntime } = await import(pathToFileURL(`${build}/runtime/node-runtime.js`).href);

const host = "127.0.0.1";
const clients = ports.split(",").map((port) => new Redis({ host, port: Number(port) }));
const database = new Redis({ host, port: Number(ledgerPort) });
const { clock } = nodeRuntime;
const runtime = {
  ...nodeRuntime,
  clock: { ...clock, wallMs: () => clock.wallMs() + Number(skew) },
};
const locks = createLocks(redlock(clients, { admission: "off" }), { ttl: 500, runtime });
const running = schedule(
  locks,
  "report",
  { every: Number(every), ledger: redisLedger(database) },
  async (/** @type {any} */ run) => {
    await database.hincrby("runs", String(run.tick.getTime()), 1);
  },
);
running.on("schedule-failed", () => undefined);
running.on("tick-failed", () => undefined);

async function end() {
  await running.stop();
  await locks.close();
  for (const client of [...clients, database]) client.disconnect();
  process.disconnect();
}

process.on("message", () => void end());
process.send?.({ ready: true });
