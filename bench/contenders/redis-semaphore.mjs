// @ts-check
/** The Mutex and RedlockMutex of redis-semaphore. */

import { ioredisClients, requirePeer } from "./clients.mjs";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {{ acquire(): Promise<void>, release(): Promise<void> }} Mutex
 * @typedef {{ Mutex: new (client: unknown, key: string, options: object) => Mutex,
 *   RedlockMutex: new (clients: readonly unknown[], key: string, options: object) => Mutex }} Module
 */

/**
 * @param {Settings} settings
 * @param {{ enableAutoPipelining: boolean }} clientOptions
 * @returns {Promise<Contender>}
 */
export async function openRedisSemaphore(settings, clientOptions) {
  const { Mutex, RedlockMutex } = /** @type {Module} */ (requirePeer("redis-semaphore"));
  const clients = await ioredisClients(settings.ports, settings, clientOptions);
  const { ttlMs, waitMs, pollMs, renewEveryMs } = settings;
  const options = {
    lockTimeout: ttlMs,
    // 0 is not allowed; with one attempt the timeout does not matter.
    acquireTimeout: waitMs === 0 ? ttlMs : waitMs,
    ...(waitMs === 0 ? { acquireAttemptsLimit: 1 } : {}),
    ...(pollMs === undefined ? {} : { retryInterval: pollMs }),
    // By default every mutex renews itself. No other contender does in this case, so it would be
    // unfair.
    refreshInterval: 0,
  };
  const keptOptions = { ...options, refreshInterval: renewEveryMs };
  const make = (/** @type {string} */ key, /** @type {object} */ given) =>
    clients.length === 1
      ? new Mutex(clients[0], key, given)
      : new RedlockMutex(clients, key, given);
  const acquired = async (/** @type {Mutex} */ mutex) => {
    await mutex.acquire();
    return mutex;
  };
  const release = (/** @type {unknown} */ held) => /** @type {Mutex} */ (held).release();
  return {
    acquire: (resource) => acquired(make(resource, options)),
    release,
    keep: (resource) => acquired(make(resource, keptOptions)),
    drop: release,
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}
