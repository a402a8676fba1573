// @ts-check
/** A TCP line that is slow in one direction: what a replica hears of its master. */

import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Stands before the server on `port`; bytes from the server arrive `delayMs` later, in their order.
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
      // What is still on the line when the master dies never arrives, as with a real one.
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
