// @ts-check
/**
 * RESP2, the protocol of Redis. Commands and replies are text with one character per byte (latin1),
 * so that a length in bytes is a length of the text.
 */

/** @typedef {string | number | null | Error | readonly unknown[]} Reply an error is a value */

/** @param {readonly string[]} parts @returns {string} to be written as latin1 */
export function encodeCommand(parts) {
  let text = `*${parts.length}\r\n`;
  for (const part of parts) {
    const bytes = encoded(part);
    text += `$${bytes.length}\r\n${bytes}\r\n`;
  }
  return text;
}

const incomplete = Symbol("incomplete");

/** Parses replies as their bytes arrive, and passes on each complete one. */
export class ReplyReader {
  #text = "";
  #at = 0;
  #onReply;

  /** @param {(reply: Reply) => void} onReply */
  constructor(onReply) {
    this.#onReply = onReply;
  }

  /** @param {string} chunk bytes as latin1 */
  read(chunk) {
    this.#text = this.#text === "" ? chunk : this.#text + chunk;
    let start = 0;
    for (this.#at = 0; ; start = this.#at) {
      const reply = this.#next();
      if (reply === incomplete) break;
      this.#onReply(reply);
    }
    this.#text = this.#text.slice(start);
  }

  /** @returns {Reply | typeof incomplete} */
  #next() {
    const start = this.#at;
    const lineEnd = this.#text.indexOf("\r\n", start);
    if (lineEnd === -1) return incomplete;
    const line = this.#text.slice(start + 1, lineEnd);
    this.#at = lineEnd + 2;
    switch (this.#text[start]) {
      case "+":
        return decoded(line);
      case "-":
        return new Error(decoded(line));
      case ":":
        return Number(line);
      case "$":
        return line === "-1" ? null : this.#bulk(Number(line));
      case "*":
        return line === "-1" ? null : this.#array(Number(line));
      default:
        throw new Error(`not a reply of RESP2: ${this.#text[start]}${line}`);
    }
  }

  /** @param {number} length in bytes */
  #bulk(length) {
    const end = this.#at + length;
    if (this.#text.length < end + 2) return incomplete;
    const value = decoded(this.#text.slice(this.#at, end));
    this.#at = end + 2;
    return value;
  }

  /** @param {number} length */
  #array(length) {
    /** @type {Reply[]} */
    const values = [];
    while (values.length < length) {
      const item = this.#next();
      if (item === incomplete) return incomplete;
      values.push(item);
    }
    return values;
  }
}

/** @param {string} text */
function encoded(text) {
  return /[\u0080-\uffff]/.test(text) ? Buffer.from(text).toString("latin1") : text;
}

/** @param {string} bytes as latin1 */
function decoded(bytes) {
  return /[\u0080-\u00ff]/.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}
