// @ts-check
/** Holdfast as it was built into dist/, with its own defaults for everything but TTL and wait. */

import { setTimeout as sleep } from "node:timers/promises";
import { ioredisClients, nodeRedisClients } from "./clients.mjs";

/** @import { Contender, Settings } from "../types.ts" */
/** @import { Lease } from "../../src/index.ts" */

const dist = process.env["HOLDFAST_BENCH_DIST"] ?? new URL("../../dist/", import.meta.url).href;
// Three and more fresh servers vote only after a quarantine of this length.
const admissionMaxMs = 60_000;

/**
 * @param {Settings} settings
 * @param {{ fencing: boolean, client: "ioredis" | "node-redis" }} kind
 * @returns {Promise<Contender>}
 */
export async function openHoldfast(settings, { fencing, client }) {
  /** @type {typeof import("../../src/index.ts")} */
  const { createLocks } = await import(new URL("index.js", dist).href);
  /** @type {typeof import("../../src/stores/redis/index.ts")} */
  const { redis, redlock } = await import(new URL("stores/redis/index.js", dist).href);
  const { ports, ttlMs, waitMs, renewEveryMs } = settings;
  const open = client === "ioredis" ? ioredisClients : nodeRedisClients;
  const clients = await open(ports, settings);
  const [first] = clients;
  if (first === undefined) throw new Error("no server");
  const store = ports.length === 1 ? redis(first, { fencing }) : redlock([...clients], { fencing });
  const locks = createLocks(store, { ttl: ttlMs, wait: waitMs, maxHold: "24h" });
  await admitted(locks);
  const keeping = { renew: renewEveryMs };
  return {
    acquire: (resource) => locks.acquire(resource),
    release,
    keep: (resource) => locks.acquire(resource, keeping),
    drop: release,
    async close() {
      await locks.close();
      for (const each of clients) {
        if ("destroy" in each) each.destroy();
        else each.disconnect();
      }
    },
  };
}

/** @param {unknown} held */
async function release(held) {
  const outcome = await /** @type {Lease} */ (held).release();
  if (!outcome.released) throw new Error(`not released: ${outcome.reason}`);
}

/** @param {import("../../src/index.ts").Locks} locks */
async function admitted(locks) {
  const untilMs = performance.now() + admissionMaxMs;
  for (;;) {
    try {
      const lease = await locks.acquire(`bench-admission:${process.pid}`);
      await lease.release();
      return;
    } catch (error) {
      if (performance.now() > untilMs) throw error;
      await sleep(500);
    }
  }
}
