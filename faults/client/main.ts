import { Redis } from "ioredis";
import { Pool } from "pg";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { nodeClients } from "../locks/node-clients.ts";
import { openLock } from "../locks/open-lock.ts";
import { AwakeTime } from "./awake.ts";
import type { ClientConfig } from "./config.ts";
import { Journal } from "./journal.ts";
import { postgresRegister, redisRegister } from "./registers.ts";
import { work } from "./worker.ts";

/** Limit, awake, for finishing everything after the request to stop. */
const stopMsMax = 15_000;

const config = JSON.parse(process.argv[2] ?? "{}") as ClientConfig;
const journal = new Journal(config.journal, config.who);
const awake = new AwakeTime();
const stop = new AbortController();

process.on("unhandledRejection", (error) => {
  journal.add({ what: "rejection", message: describe(error) });
});
process.on("uncaughtException", (error) => {
  journal.add({ what: "rejection", message: `uncaught: ${describe(error)}` });
  process.exit(70);
});
process.on("message", () => stop.abort());
// Without its parent, no process would ever stop this one.
process.on("disconnect", () => process.exit(0));

await run();

async function run(): Promise<void> {
  journal.add({ what: "start" });
  const nodes = await nodeClients(config.nodePorts, config.connections);
  const lock = openLock(config.lock, config.root, nodes, config);
  const pool = new Pool({ connectionString: config.postgresUrl, max: 4 });
  const redis = new Redis({ port: config.registerPort, host: "127.0.0.1" });
  pool.on("error", () => undefined);
  redis.on("error", () => undefined);
  const workers = Array.from({ length: config.workers }, (_, worker) =>
    work(
      {
        who: config.who,
        journal,
        lock,
        plain: [postgresRegister(pool, "postgres"), redisRegister(redis, "redis")],
        fenced: [postgresRegister(pool, "postgres-fenced"), redisRegister(redis, "redis-fenced")],
        random: new SeededRandom(config.seed * 100 + worker),
        awake,
        resources: config.resources,
        waitMs: config.waitMs,
        ttlMs: config.ttlMs,
        stopping: stop.signal,
      },
      worker,
    ),
  );
  stop.signal.addEventListener("abort", () => {
    const never = new Promise(() => undefined);
    void awake.bound(never, stopMsMax, () => {
      journal.add({ what: "hung" });
      process.exit(3);
    });
  });
  await Promise.all(workers);
  await lock.close();
  for (const client of [...nodes, redis]) client.disconnect();
  await pool.end();
  journal.add({ what: "stop" });
  process.exit(0);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
