// @ts-check
/** The lock libraries of npm. */

import { pathToFileURL } from "node:url";
import { redisSemaphore, redlock4, redlock5 } from "../../tools/peers/peer-locks.mjs";
import { redlockUniversal, renewing } from "../../tools/peers/peer-locks.mjs";
import { ioredisClients, peerAddress, requirePeer } from "./clients.mjs";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {import("../../tools/peers/peer-locks.mjs").PeerLocks} PeerLocks
 * @typedef {{ acquire(options: object): Promise<boolean>, release(): Promise<void>,
 *   extend(ttlMs: number): Promise<void> }} VerrouLock
 * @typedef {{ Verrou: new (config: object) => {
 *   createLock(key: string, ttlMs: number): VerrouLock } }} Verrou
 * @typedef {{ redisStore: (options: object) => object }} VerrouDriver
 */

/**
 * @param {Settings} settings
 * @param {(clients: readonly import("ioredis").Redis[]) => PeerLocks | Promise<PeerLocks>} locksOn
 * @param {import("ioredis").RedisOptions} [clientOptions]
 * @returns {Promise<Contender>}
 */
async function contender(settings, locksOn, clientOptions) {
  const clients = await ioredisClients(settings.ports, settings, clientOptions);
  return {
    ...(await locksOn(clients)),
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

/** @param {string} name @returns {Promise<any>} a library without types */
async function importPeer(name) {
  return await import(pathToFileURL(peerAddress(name)).href);
}

/** @param {Settings} settings */
export function openRedlock4(settings) {
  const Redlock = /** @type {Parameters<typeof redlock4>[0]} */ (requirePeer("redlock4"));
  return contender(settings, (clients) => redlock4(Redlock, clients, settings));
}

/** @param {Settings} settings */
export async function openRedlock5(settings) {
  const { default: library } = await importPeer("redlock5");
  const Redlock = library.default ?? library;
  return await contender(settings, (clients) => redlock5(Redlock, clients, settings));
}

/**
 * @param {Settings} settings
 * @param {{ enableAutoPipelining: boolean }} clientOptions
 */
export function openRedisSemaphore(settings, clientOptions) {
  const library = /** @type {Parameters<typeof redisSemaphore>[0]} */ (
    requirePeer("redis-semaphore")
  );
  const locksOn = (/** @type {readonly object[]} */ clients) =>
    redisSemaphore(library, clients, settings);
  return contender(settings, locksOn, clientOptions);
}

/** @param {Settings} settings */
export async function openRedlockUniversal(settings) {
  const library = await importPeer("redlock-universal");
  return await contender(settings, (clients) => redlockUniversal(library, clients, settings));
}

/** Opens Verrou on its Redis store, which supports one server. @param {Settings} settings */
export async function openVerrou(settings) {
  /** @type {Verrou} */
  const { Verrou } = await importPeer("@verrou/core");
  /** @type {VerrouDriver} */
  const { redisStore } = await importPeer("@verrou/core/drivers/redis");
  const { ttlMs, waitMs, pollMs, renewEveryMs } = settings;
  const retry =
    waitMs === 0
      ? { attempts: 1 }
      : { timeout: waitMs, ...(pollMs === undefined ? {} : { delay: pollMs }) };
  return await contender(settings, ([connection]) => {
    const stores = { redis: { driver: redisStore({ connection }) } };
    const verrou = new Verrou({ default: "redis", stores });
    const acquire = async (/** @type {string} */ resource) => {
      const lock = verrou.createLock(resource, ttlMs);
      if (!(await lock.acquire({ retry }))) throw new Error("held by another");
      return lock;
    };
    return {
      acquire,
      release: (held) => /** @type {VerrouLock} */ (held).release(),
      // The library has no renewal.
      ...renewing(acquire, renewEveryMs, {
        renew: (lock) => lock.extend(ttlMs),
        release: (lock) => lock.release(),
      }),
    };
  });
}
