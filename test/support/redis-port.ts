import { createServer } from "node:net";

/**
 * Below the range the kernel hands to outgoing connections (32768 and up on Linux). A port of that
 * range could be taken by any client socket between a server's kill and its restart, and a client
 * that keeps dialling a dead port of that range can even connect to itself. The same goes for the
 * port of a Cluster node's bus, which is 10000 higher.
 */
const lowestPort = 11_000;
const highestPort = 22_700;

/** Returns a free loopback port. Two processes can still be given the same one. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort));
    if (await canListen(port)) return port;
  }
  throw new Error("found no free loopback port in 100 attempts");
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}
