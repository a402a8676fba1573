// @ts-check
/** Redlock 4 and 5 from npm. */

import { pathToFileURL } from "node:url";
import { ioredisClients, peerAddress, requirePeer } from "./clients.mjs";

/**
 * @import { Contender, Settings } from "../types.ts"
 * @typedef {{ unlock(): Promise<unknown>, extend(ttlMs: number): Promise<unknown> }} Lock4
 * @typedef {{ lock(resource: string, ttlMs: number): Promise<Lock4>,
 *   on(event: string, listener: () => void): void }} Redlock4
 * @typedef {{ release(): Promise<unknown> }} Lock5
 * @typedef {{ acquire(resources: string[], ttlMs: number): Promise<Lock5>,
 *   using(resources: string[], ttlMs: number, routine: () => Promise<void>): Promise<void>,
 *   on(event: string, listener: () => void): void }} Redlock5
 */

/** @param {Settings} settings */
function retrySettings({ waitMs, pollMs }) {
  if (waitMs === 0) return { retryCount: 0 };
  if (pollMs === undefined) return { retryCount: Math.ceil(waitMs / 200) };
  // Both versions subtract and add the jitter, which gives the same spread as raw polling.
  const retryCount = Math.ceil(waitMs / pollMs);
  return { retryCount, retryDelay: pollMs, retryJitter: pollMs / 2 };
}

/** @param {Settings} settings @returns {Promise<Contender>} */
export async function openRedlock4(settings) {
  const Redlock = /** @type {new (clients: readonly unknown[], options: object) => Redlock4} */ (
    requirePeer("redlock4")
  );
  const clients = await ioredisClients(settings.ports, settings);
  const redlock = new Redlock(clients, retrySettings(settings));
  redlock.on("clientError", () => undefined);
  const { ttlMs, renewEveryMs } = settings;
  /** @typedef {{ lock: Lock4, timer: NodeJS.Timeout }} Kept */
  return {
    acquire: (resource) => redlock.lock(resource, ttlMs),
    release: (held) => /** @type {Lock4} */ (held).unlock(),
    async keep(resource) {
      const lock = await redlock.lock(resource, ttlMs);
      // The library has no renewal.
      const renew = () => void lock.extend(ttlMs).catch(() => undefined);
      return { lock, timer: setInterval(renew, renewEveryMs) };
    },
    drop(kept) {
      const { lock, timer } = /** @type {Kept} */ (kept);
      clearInterval(timer);
      return lock.unlock();
    },
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

/** @param {Settings} settings @returns {Promise<Contender>} */
export async function openRedlock5(settings) {
  const module = await import(pathToFileURL(peerAddress("redlock5")).href);
  const Redlock = /** @type {new (clients: readonly unknown[], options: object) => Redlock5} */ (
    module.default.default ?? module.default
  );
  const clients = await ioredisClients(settings.ports, settings);
  const { ttlMs, renewEveryMs } = settings;
  // The library counts down from an expiration without the drift.
  const automaticExtensionThreshold = Math.max(0, ttlMs - renewEveryMs);
  const redlock = new Redlock(clients, { ...retrySettings(settings), automaticExtensionThreshold });
  redlock.on("error", () => undefined);
  return {
    acquire: (resource) => redlock.acquire([resource], ttlMs),
    release: (held) => /** @type {Lock5} */ (held).release(),
    keep: (resource) => scoped((work) => redlock.using([resource], ttlMs, work)),
    drop: (kept) => /** @type {Scope} */ (kept).end(),
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

/** @typedef {{ end(): Promise<void> }} Scope */

/**
 * Turns a library's `using`, which ends with its routine, into a scope that is ended by a call.
 *
 * @param {(work: () => Promise<void>) => Promise<void>} using
 * @returns {Promise<Scope>}
 */
export function scoped(using) {
  return new Promise((resolve, reject) => {
    /** @type {() => void} */
    let finish = () => undefined;
    const finished = new Promise((done) => {
      finish = () => done(undefined);
    });
    const whole = using(async () => {
      resolve({
        end() {
          finish();
          return whole;
        },
      });
      await finished;
    });
    whole.catch(reject);
  });
}
