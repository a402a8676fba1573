// @ts-check
/**
 * F: the hand-written lock on ioredis 5. With a wait it is the raw polling of the contended rows.
 */

import { ioredisClients } from "./clients.mjs";
import { rawLock, renewScript, unsetScript } from "./raw-lock.mjs";

/** @import { Settings } from "../types.ts" */

/** @param {Settings} settings */
export async function openFloor(settings) {
  const clients = await ioredisClients(settings.ports, settings);
  const nodes = await Promise.all(
    clients.map(async (client) => {
      const unset = String(await client.script("LOAD", unsetScript));
      const renew = String(await client.script("LOAD", renewScript));
      return {
        set: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await client.set(key, value, "PX", ttlMs, "NX")) === "OK",
        unset: async (/** @type {string} */ key, /** @type {string} */ value) =>
          (await client.evalsha(unset, 1, key, value)) === 1,
        renew: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await client.evalsha(renew, 1, key, value, ttlMs)) === 1,
      };
    }),
  );
  return rawLock(nodes, settings, async () => {
    for (const client of clients) client.disconnect();
  });
}
