// @ts-check
/** Verrou on its Redis store, which supports one server. */

import { pathToFileURL } from "node:url";
import { ioredisClients, peerAddress } from "./clients.mjs";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {{ acquire(options: object): Promise<boolean>, release(): Promise<void>,
 *   extend(ttlMs: number): Promise<void> }} Lock
 * @typedef {{ Verrou: new (config: object) => { createLock(key: string, ttlMs: number): Lock } }} Core
 * @typedef {{ redisStore: (options: object) => object }} Driver
 * @typedef {{ lock: Lock, timer: NodeJS.Timeout }} Kept
 */

/** @param {Settings} settings @returns {Promise<Contender>} */
export async function openVerrou(settings) {
  /** @type {Core} */
  const { Verrou } = await import(pathToFileURL(peerAddress("@verrou/core")).href);
  /** @type {Driver} */
  const { redisStore } = await import(
    pathToFileURL(peerAddress("@verrou/core/drivers/redis")).href
  );
  const [connection] = await ioredisClients(settings.ports, settings);
  const { ttlMs, waitMs, pollMs, renewEveryMs } = settings;
  const stores = { redis: { driver: redisStore({ connection }) } };
  const verrou = new Verrou({ default: "redis", stores });
  const retry =
    waitMs === 0
      ? { attempts: 1 }
      : { timeout: waitMs, ...(pollMs === undefined ? {} : { delay: pollMs }) };
  const acquired = async (/** @type {string} */ resource) => {
    const lock = verrou.createLock(resource, ttlMs);
    if (!(await lock.acquire({ retry }))) throw new Error("held by another");
    return lock;
  };
  return {
    acquire: acquired,
    release: (held) => /** @type {Lock} */ (held).release(),
    async keep(resource) {
      const lock = await acquired(resource);
      // The library has no renewal.
      const renew = () => void lock.extend(ttlMs).catch(() => undefined);
      return { lock, timer: setInterval(renew, renewEveryMs) };
    },
    drop(kept) {
      const { lock, timer } = /** @type {Kept} */ (kept);
      clearInterval(timer);
      return lock.release();
    },
    async close() {
      connection?.disconnect();
    },
  };
}
