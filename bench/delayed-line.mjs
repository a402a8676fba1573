// @ts-check
/** A TCP proxy that delays one direction: from a master to its replica. */

import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Starts a proxy for the server on `port`: bytes from the server arrive `delayMs` later, in order.
 *
 * @param {number} port
 * @param {number} delayMs
 */
export async function startDelayedLine(port, delayMs) {
  /** @type {Set<import("node:net").Socket>} */
  const sockets = new Set();
  const listener = createServer((client) => {
    const server = connect({ port, host: "127.0.0.1", noDelay: true });
    client.setNoDelay(true);
    for (const socket of [client, server]) {
      sockets.add(socket);
      const end = () => {
        sockets.delete(socket);
        client.destroy();
        server.destroy();
      };
      socket.on("error", end).on("close", end);
    }
    client.on("data", (chunk) => void server.write(chunk));
    server.on("data", (chunk) => {
      // Bytes under way when the master dies never arrive, as in a real network.
      setTimeout(() => {
        if (!client.destroyed) client.write(chunk);
      }, delayMs);
    });
  });
  listener.listen({ port: 0, host: "127.0.0.1" });
  await once(listener, "listening");
  const address = listener.address();
  if (typeof address !== "object" || address === null) throw new Error("no address");
  return {
    port: address.port,
    async stop() {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}
