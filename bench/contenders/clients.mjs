// @ts-check
/** Redis clients as a user would create them, with a count of the commands that they send. */

import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { createClient } from "redis";

let sent = 0;
let isCounting = false;

/**
 * Returns the number of commands that the clients of this process have sent since counting began.
 */
export function commandsSent() {
  return sent;
}

/** Adds one to the count, for clients written here. */
export function countCommand() {
  sent += 1;
}

/**
 * @typedef {(this: Redis, command: import("ioredis").Command, stream?: unknown) => unknown} SendCommand
 */

/**
 * Counts every command of ioredis: all go through this method, pipelined or not. A script counts
 * as one command.
 */
function countIoredis() {
  if (isCounting) return;
  isCounting = true;
  const { sendCommand: original } = /** @type {{ sendCommand: SendCommand }} */ (Redis.prototype);
  Redis.prototype.sendCommand = function sendCommand(command, stream) {
    sent += 1;
    return original.call(this, command, stream);
  };
}

/**
 * @param {readonly number[]} ports
 * @param {{ countCommands: boolean }} settings
 * @param {import("ioredis").RedisOptions} [options]
 */
export async function ioredisClients(ports, { countCommands }, options = {}) {
  if (countCommands) countIoredis();
  const clients = ports.map(
    (port) => new Redis({ ...options, port, host: "127.0.0.1", lazyConnect: true }),
  );
  for (const client of clients) client.on("error", () => undefined);
  await Promise.all(clients.map((client) => client.connect()));
  return clients;
}

/** @param {readonly number[]} ports @param {{ countCommands: boolean }} settings */
export async function nodeRedisClients(ports, { countCommands }) {
  const clients = ports.map((port) => createClient({ socket: { port, host: "127.0.0.1" } }));
  for (const client of clients) {
    client.on("error", () => undefined);
    await client.connect();
    if (!countCommands) continue;
    const original = client.sendCommand.bind(client);
    /** @type {typeof client.sendCommand} */
    const counted = (args, options) => {
      sent += 1;
      return original(args, options);
    };
    client.sendCommand = counted;
  }
  return clients;
}

const require = createRequire(new URL("../package.json", import.meta.url));

/** Returns the address of a package that only the benchmark needs. @param {string} name */
export function peerAddress(name) {
  return require.resolve(name);
}

/** @param {string} name @returns {unknown} */
export function requirePeer(name) {
  return require(name);
}
