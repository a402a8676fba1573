// @ts-check
/** Holdfast as built into dist/, with its defaults apart from TTL and wait. */

import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { ioredisClients, nodeRedisClients } from "./clients.mjs";

/** @import { Contender, Settings } from "../types.ts" */
/** @import { Lease, Locks } from "../../src/index.ts" */

const dist = process.env["HOLDFAST_BENCH_DIST"] ?? new URL("../../dist/", import.meta.url).href;

/** Folder of the build of another checkout, which is measured as "before" beside this one. */
export const before = process.env["HOLDFAST_BENCH_BEFORE"];

/**
 * Returns the address of a file of the build, or of the build in another folder.
 *
 * @param {string} path
 * @param {string} [build]
 */
export function addressOf(path, build) {
  return new URL(path, build === undefined ? dist : `${pathToFileURL(build).href}/`).href;
}

// Three or more fresh servers vote only after a quarantine of this length.
const admissionMaxMs = 60_000;

/**
 * @param {Settings} settings
 * @param {{ fencing: boolean, client: "ioredis" | "node-redis", build?: string }} kind `build` is
 *   the folder of another build
 * @returns {Promise<Contender>}
 */
export async function openHoldfast(settings, { fencing, client, build }) {
  /** @type {typeof import("../../src/index.ts")} */
  const { createLocks } = await import(addressOf("index.js", build));
  /** @type {typeof import("../../src/stores/redis/index.ts")} */
  const { redis, redlock } = await import(addressOf("stores/redis/index.js", build));
  const { ports, ttlMs, waitMs, renewEveryMs } = settings;
  const open = client === "ioredis" ? ioredisClients : nodeRedisClients;
  const clients = await open(ports, settings);
  const [first] = clients;
  if (first === undefined) throw new Error("no server");
  const newLocks = () => {
    const many = ports.length > 1;
    const store = many ? redlock([...clients], { fencing }) : redis(first, { fencing });
    return createLocks(store, { ttl: ttlMs, wait: waitMs, maxHold: "24h" });
  };
  const locks = newLocks();
  await admitted(locks);
  const keeping = { renew: renewEveryMs };
  const keep = (/** @type {string} */ resource) => locks.acquire(resource, keeping);
  const managers = [locks, ...Array.from({ length: (settings.managers ?? 1) - 1 }, newLocks)];
  const close = async () => {
    await Promise.all(managers.map((each) => each.close()));
    for (const each of clients) {
      if ("destroy" in each) each.destroy();
      else each.disconnect();
    }
  };
  if (managers.length > 1) return { ...eachByItsOwn(managers), keep, drop: release, close };
  const acquire = (/** @type {string} */ resource) => locks.acquire(resource);
  return { acquire, release, keep, drop: release, close };
}

/**
 * Makes each call with another manager, as if it came from another process.
 *
 * @param {readonly Locks[]} managers
 * @returns {Pick<Contender, "acquire" | "release">}
 */
function eachByItsOwn(managers) {
  const idle = [...managers];
  return {
    async acquire(resource) {
      const locks = idle.pop();
      if (locks === undefined) throw new Error("more calls than managers");
      try {
        return { locks, lease: await locks.acquire(resource) };
      } catch (error) {
        idle.push(locks);
        throw error;
      }
    },
    async release(held) {
      const { locks, lease } = /** @type {{ locks: Locks, lease: Lease }} */ (held);
      try {
        await release(lease);
      } finally {
        idle.push(locks);
      }
    },
  };
}

/** @param {unknown} held */
async function release(held) {
  const outcome = await /** @type {Lease} */ (held).release();
  if (!outcome.released) throw new Error(`not released: ${outcome.reason}`);
}

/** @param {Locks} locks */
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
