// @ts-check
/**
 * A TCP proxy between clients and one server. It can hold back either direction, and deliver the
 * held bytes when it heals, as a network that comes back does, or break the connection instead. A
 * connection that is opened meanwhile is accepted and gets no reply. The proxy can also delay
 * bytes, and break connections at the moment when a reply comes back.
 */

import { connect, createServer } from "node:net";
import { Flow } from "./flow.mjs";
import { freePort } from "./free-port.mjs";

/** @typedef {import("node:net").Socket} Socket */
/** @typedef {"requests" | "replies"} Direction of the bytes: to the server, or to the client */
/** @typedef {{ client: Socket, server: Socket, requests: Flow, replies: Flow }} Pair */
/**
 * @typedef {object} TcpProxyOptions
 * @property {boolean} [losesAtEnd] true if bytes under way are lost when one side ends, false if
 *   they still arrive. @default false
 */

/** @type {readonly Direction[]} */
const directions = ["requests", "replies"];
const portAttempts = 20;

export class TcpProxy {
  /** Port of the server that new connections lead to. */
  target;
  /** Port of the proxy. */
  port;
  #listener;
  #losesAtEnd;
  /** @type {Set<Pair>} */
  #pairs = new Set();
  #held = { requests: false, replies: false };
  #delayMs = { requests: 0, replies: 0 };

  /**
   * @param {import("node:net").Server} listener
   * @param {number} port of the listener
   * @param {number} target
   * @param {TcpProxyOptions} options
   */
  constructor(listener, port, target, { losesAtEnd = false } = {}) {
    this.#listener = listener;
    this.#losesAtEnd = losesAtEnd;
    this.port = port;
    this.target = target;
    listener.on("connection", (client) => this.connected(client));
  }

  /** @param {number} target @param {TcpProxyOptions} [options] */
  static async open(target, options) {
    const { listener, port } = await listen();
    return new TcpProxy(listener, port, target, options);
  }

  /** @protected @returns {readonly Pair[]} the open connections */
  get pairs() {
    return [...this.#pairs];
  }

  /** @param {Direction} direction */
  hold(direction) {
    this.#held[direction] = true;
    for (const pair of this.pairs) pair[direction].hold();
  }

  /** @param {Direction} direction @param {"deliver" | "reset"} how */
  heal(direction, how) {
    this.#held[direction] = false;
    for (const pair of this.pairs) {
      if (how === "reset" && pair[direction].isHolding) this.#break(pair);
      else pair[direction].open();
    }
  }

  /**
   * Breaks each open connection when its next reply arrives here, and loses that reply: the server
   * has run the command, and the client does not learn it.
   */
  loseNextReplies() {
    for (const { replies } of this.pairs) replies.breaksAtNext = true;
  }

  /** Ends `loseNextReplies` for the connections that have had no reply since. */
  keepReplies() {
    for (const { replies } of this.pairs) replies.breaksAtNext = false;
  }

  /** @param {number} delayMs @param {readonly Direction[]} delayed both directions by default */
  setDelay(delayMs, delayed = directions) {
    for (const direction of delayed) {
      this.#delayMs[direction] = delayMs;
      for (const pair of this.pairs) pair[direction].delayMs = delayMs;
    }
  }

  /** Breaks every connection on both sides, as a firewall does. */
  reset() {
    for (const pair of this.pairs) {
      pair.client.resetAndDestroy();
      this.#break(pair);
    }
  }

  /** Breaks all connections. Resolves when no more are accepted. @returns {Promise<void>} */
  stop() {
    return new Promise((resolve) => {
      this.#listener.close(() => resolve());
      for (const pair of this.pairs) this.#break(pair);
    });
  }

  /**
   * @protected
   * @param {Socket} client
   * @param {{ requests?: Partial<import("./flow.mjs").FlowEvents>,
   *   replies?: Partial<import("./flow.mjs").FlowEvents> }} events
   */
  connected(client, events = {}) {
    const server = connect({ port: this.target, host: "127.0.0.1", noDelay: true });
    client.setNoDelay(true);
    const onBroken = () => this.#break(pair);
    const loses = this.#losesAtEnd;
    /** @type {Pair} */
    const pair = {
      client,
      server,
      requests: new Flow(client, server, { ...events.requests, onBroken }, loses),
      replies: new Flow(server, client, { ...events.replies, onBroken }, loses),
    };
    this.#pairs.add(pair);
    for (const direction of directions) {
      pair[direction].delayMs = this.#delayMs[direction];
      if (this.#held[direction]) pair[direction].hold();
    }
  }

  /** @param {Pair} pair */
  #break(pair) {
    if (!this.#pairs.delete(pair)) return;
    pair.requests.stop();
    pair.replies.stop();
    pair.client.destroy();
    pair.server.destroy();
  }
}

/** Listens on a free port, which another process may take first. */
export async function listen() {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    const listener = createServer();
    const isListening = await new Promise((resolve) => {
      listener.once("error", () => resolve(false));
      listener.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(true));
    });
    if (isListening) return { listener, port };
    if (attempt >= portAttempts) throw new Error("found no free port for a proxy");
  }
}
