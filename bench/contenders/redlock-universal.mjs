// @ts-check
/** The simple lock and the Redlock of redlock-universal. */

import { pathToFileURL } from "node:url";
import { ioredisClients, peerAddress } from "./clients.mjs";
import { scoped } from "./redlock.mjs";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {{ acquire(): Promise<object>, release(handle: object): Promise<boolean>,
 *   using(routine: () => Promise<void>): Promise<void> }} Lock
 * @typedef {{ IoredisAdapter: new (client: unknown) => object, createLock: (config: object) => Lock,
 *   createRedlock: (config: object) => Lock }} Module
 * @typedef {{ lock: Lock, handle: object }} Held
 */

/** @param {Settings} settings @returns {Promise<Contender>} */
export async function openRedlockUniversal(settings) {
  const address = pathToFileURL(peerAddress("redlock-universal")).href;
  /** @type {Module} */
  const { IoredisAdapter, createLock, createRedlock } = await import(address);
  const clients = await ioredisClients(settings.ports, settings);
  const adapters = clients.map((client) => new IoredisAdapter(client));
  const { ttlMs, waitMs, pollMs } = settings;
  const retry =
    waitMs === 0
      ? { retryAttempts: 0 }
      : {
          retryAttempts: Math.ceil(waitMs / (pollMs ?? 100)),
          ...(pollMs === undefined ? {} : { retryDelay: pollMs }),
        };
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const shared = { ttl: ttlMs, ...retry, logger: quiet };
  const [adapter] = adapters;
  const make = (/** @type {string} */ key) =>
    adapters.length === 1
      ? createLock({ ...shared, adapter, key })
      : createRedlock({ ...shared, adapters, key });
  return {
    async acquire(resource) {
      const lock = make(resource);
      return { lock, handle: await lock.acquire() };
    },
    async release(held) {
      const { lock, handle } = /** @type {Held} */ (held);
      if (!(await lock.release(handle))) throw new Error("not released");
    },
    // It renews when a fifth of the TTL is left, which cannot be configured.
    keep: (resource) => scoped((work) => make(resource).using(work)),
    drop: (kept) => /** @type {{ end(): Promise<void> }} */ (kept).end(),
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}
