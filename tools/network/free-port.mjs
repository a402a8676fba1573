// @ts-check
/** Free ports of the loopback interface. */

import { createServer } from "node:net";

/**
 * Below the range that the kernel gives to outgoing connections (32768 and up on Linux). A client's
 * socket could take a port of that range between a server's kill and its restart, and a client that
 * keeps dialling a closed port of that range can even connect to itself. The same holds for the
 * port of a Cluster node's bus, which is 10000 higher.
 */
const lowestPort = 11_000;
const highestPort = 22_700;

/** Returns a free port. Two processes can still be given the same one. */
export async function freePort() {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort));
    if (await canListen(port)) return port;
  }
  throw new Error("found no free loopback port in 100 attempts");
}

/** @param {number} port @returns {Promise<boolean>} */
function canListen(port) {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}
