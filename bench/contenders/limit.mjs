// @ts-check
/**
 * The limit: the hand-written lock on a plain socket, with one write per turn of the event loop.
 */

import { rawLock, renewScript, unsetScript } from "./raw-lock.mjs";
import { encode, openRespSocket } from "./resp-socket.mjs";

/** @import { Settings } from "../types.ts" */

/** @param {Settings} settings */
export async function openLimit(settings) {
  const sockets = await Promise.all(settings.ports.map((port) => openRespSocket(port)));
  const nodes = await Promise.all(
    sockets.map(async (socket) => {
      const unset = String(await socket.send(encode("SCRIPT", "LOAD", unsetScript)));
      const renew = String(await socket.send(encode("SCRIPT", "LOAD", renewScript)));
      return {
        set: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await socket.send(encode("SET", key, value, "PX", String(ttlMs), "NX"))) === "OK",
        unset: async (/** @type {string} */ key, /** @type {string} */ value) =>
          (await socket.send(encode("EVALSHA", unset, "1", key, value))) === 1,
        renew: async (
          /** @type {string} */ key,
          /** @type {string} */ value,
          /** @type {number} */ ttlMs,
        ) => (await socket.send(encode("EVALSHA", renew, "1", key, value, String(ttlMs)))) === 1,
      };
    }),
  );
  return rawLock(nodes, settings, async () => {
    for (const socket of sockets) socket.close();
  });
}
