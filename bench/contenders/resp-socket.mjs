// @ts-check
/**
 * The smallest layer between a lock and Redis: one socket, one write per turn of the event loop,
 * and a parser for the three kinds of replies to a lock's commands.
 */

import { connect } from "node:net";
import { countCommand } from "./clients.mjs";

/**
 * @typedef {(reply: string | number | null | Error) => void} OnReply
 * @typedef {{ send(command: string): Promise<string | number | null>, close(): void }} RespSocket
 */

/** @param {readonly string[]} parts all of them plain ASCII */
export function encode(...parts) {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) text += `$${part.length}\r\n${part}\r\n`;
  return text;
}

/** Parses the complete replies in a text, passes each to its receiver, and keeps the rest. */
export class Replies {
  #unread = "";
  /** @type {OnReply[]} */
  #waiting = [];
  #first = 0;

  /** @param {OnReply} onReply */
  expect(onReply) {
    this.#waiting.push(onReply);
  }

  /** @param {string} chunk */
  read(chunk) {
    const text = this.#unread === "" ? chunk : this.#unread + chunk;
    let at = 0;
    for (;;) {
      const lineEnd = text.indexOf("\r\n", at);
      if (lineEnd < 0) break;
      const line = text.slice(at + 1, lineEnd);
      let end = lineEnd + 2;
      /** @type {Parameters<OnReply>[0]} */
      let reply = line;
      const kind = text[at];
      if (kind === ":") reply = Number(line);
      else if (kind === "-") reply = new Error(line);
      else if (kind === "$" && line === "-1") reply = null;
      else if (kind === "$") {
        end += Number(line) + 2;
        if (text.length < end) break;
        reply = text.slice(lineEnd + 2, end - 2);
      }
      at = end;
      this.#next()(reply);
    }
    this.#unread = text.slice(at);
  }

  #next() {
    const onReply = this.#waiting[this.#first];
    if (onReply === undefined) throw new Error("a reply without a request");
    this.#first += 1;
    if (this.#first > 1_000 && this.#first * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    return onReply;
  }
}

/** @param {number} port @returns {Promise<RespSocket>} */
export function openRespSocket(port) {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  socket.setEncoding("latin1");
  const replies = new Replies();
  let unsent = "";
  const flush = () => {
    socket.write(unsent, "latin1");
    unsent = "";
  };
  socket.on("data", (chunk) => replies.read(String(chunk)));
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.on("error", () => undefined);
      resolve({
        send(command) {
          countCommand();
          if (unsent === "") process.nextTick(flush);
          unsent += command;
          return new Promise((done, failed) => {
            replies.expect((reply) => {
              if (reply instanceof Error) failed(reply);
              else done(reply);
            });
          });
        },
        close: () => socket.destroy(),
      });
    });
  });
}
