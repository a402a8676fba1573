// @ts-check
/**
 * The limit: the hand-written lock on a plain socket, with one write per turn of the event loop.
 */

import { RedisConnection } from "../../tools/redis/redis-connection.mjs";
import { countCommand } from "./clients.mjs";
import { rawLock, renewScript, unsetScript } from "./raw-lock.mjs";

/** @import { Settings } from "../types.ts" */

/** @param {Settings} settings */
export async function openLimit(settings) {
  const connections = await Promise.all(
    settings.ports.map((port) => RedisConnection.open({ port })),
  );
  const nodes = await Promise.all(
    connections.map(async (connection) => {
      const send = (/** @type {string[]} */ ...command) => {
        countCommand();
        return connection.send(...command);
      };
      const unset = String(await send("SCRIPT", "LOAD", unsetScript));
      const renew = String(await send("SCRIPT", "LOAD", renewScript));
      return {
        set: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await send("SET", key, value, "PX", String(ttlMs), "NX")) === "OK",
        unset: async (/** @type {string} */ key, /** @type {string} */ value) =>
          (await send("EVALSHA", unset, "1", key, value)) === 1,
        renew: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await send("EVALSHA", renew, "1", key, value, String(ttlMs))) === 1,
      };
    }),
  );
  return rawLock(nodes, settings, async () => {
    for (const connection of connections) connection.close();
  });
}
