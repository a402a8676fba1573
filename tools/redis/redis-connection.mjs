// @ts-check
/**
 * A connection to a Redis server without a client library: what tests and measurements know of a
 * server does not depend on the adapters that they test.
 */

import { connect } from "node:net";
import { encodeCommand, ReplyReader } from "./resp.mjs";

/** @typedef {import("./resp.mjs").Reply} Reply */
/**
 * @typedef {object} Address
 * @property {number} [port] on the loopback interface
 * @property {string} [path] of a Unix socket
 * @property {number} [timeoutMs] limit for a silence of the server, none by default
 */

/** Sends the commands of one turn of the event loop in one write. */
export class RedisConnection {
  #socket;
  #name;
  #unsent = "";
  /** @type {((reply: Reply) => void)[]} */
  #waiting = [];
  /** Index of the first request that waits, because `shift` of a long array is slow. */
  #first = 0;
  /** @type {Error | undefined} */
  #failure;

  /** @param {import("node:net").Socket} socket @param {string} name of the server, for errors */
  constructor(socket, name) {
    this.#socket = socket;
    this.#name = name;
    const reader = new ReplyReader((reply) => this.#settleFirst(reply));
    socket.setEncoding("latin1");
    socket.on("data", (chunk) => reader.read(String(chunk)));
    socket.on("error", (error) => {
      this.#failure ??= error;
    });
    socket.once("close", () => this.#closed());
  }

  /** @param {Address} address @returns {Promise<RedisConnection>} */
  static open({ port, path, timeoutMs = 0 }) {
    const name = path ?? `port ${port}`;
    const host = "127.0.0.1";
    const socket =
      path === undefined ? connect({ port: port ?? 0, host, noDelay: true }) : connect({ path });
    socket.setTimeout(timeoutMs, () => {
      socket.destroy(new Error(`no reply from ${name} in ${timeoutMs} ms`));
    });
    return new Promise((resolve, reject) => {
      const connection = new RedisConnection(socket, name);
      socket.once("error", reject);
      socket.once("connect", () => resolve(connection));
    });
  }

  /**
   * Sends one command. Rejects if the reply is an error.
   *
   * @param {string[]} command
   * @returns {Promise<unknown>}
   */
  send(...command) {
    return new Promise((resolve, reject) => {
      this.#request(command, (reply) => {
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }

  /**
   * Sends commands at once. Returns their replies, errors as values.
   *
   * @param {readonly (readonly string[])[]} commands
   * @returns {Promise<Reply[]>}
   */
  sendAll(commands) {
    return Promise.all(
      commands.map((command) => {
        return new Promise((/** @type {(reply: Reply) => void} */ resolve) => {
          this.#request(command, resolve);
        });
      }),
    );
  }

  close() {
    this.#socket.destroy();
  }

  /** @param {readonly string[]} command @param {(reply: Reply) => void} onReply */
  #request(command, onReply) {
    if (this.#socket.destroyed) {
      onReply(this.#failure ?? new Error(`${this.#name}: the connection is closed`));
      return;
    }
    this.#waiting.push(onReply);
    if (this.#unsent === "") process.nextTick(() => this.#flush());
    this.#unsent += encodeCommand(command);
  }

  #flush() {
    const text = this.#unsent;
    this.#unsent = "";
    if (!this.#socket.destroyed) this.#socket.write(text, "latin1");
  }

  /** @param {Reply} reply */
  #settleFirst(reply) {
    const onReply = this.#waiting[this.#first];
    if (onReply === undefined) throw new Error(`${this.#name} sent a reply without a request`);
    this.#first += 1;
    if (this.#first > 1_000 && this.#first * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    onReply(reply);
  }

  #closed() {
    const failure = this.#failure ?? new Error(`${this.#name} closed the connection`);
    const waiting = this.#waiting.slice(this.#first);
    this.#waiting = [];
    this.#first = 0;
    for (const onReply of waiting) onReply(failure);
  }
}

/**
 * Sends one command over a connection of its own. Rejects if the reply is an error.
 *
 * @param {number} port
 * @param {readonly string[]} command
 * @param {number} [timeoutMs]
 */
export async function redisCommand(port, command, timeoutMs = 10_000) {
  const connection = await RedisConnection.open({ port, timeoutMs });
  try {
    return await connection.send(...command);
  } finally {
    connection.close();
  }
}
