// @ts-check
/** The least of a Redis client: a batch of commands out, as many replies back, errors as values. */

/**
 * @param {import("node:net").Socket} socket
 * @returns {(commands: readonly (readonly string[])[]) => Promise<unknown[]>}
 */
export function respSender(socket) {
  let received = Buffer.alloc(0);
  /** @type {{ count: number, replies: unknown[], resolve: (replies: unknown[]) => void } | undefined} */
  let waiting;
  socket.on("data", (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    if (waiting === undefined) return;
    const { replies, count, resolve } = waiting;
    let at = 0;
    while (replies.length < count) {
      const parsed = parse(received, at);
      if (parsed === undefined) break;
      at = parsed.end;
      replies.push(parsed.value);
    }
    received = received.subarray(at);
    if (replies.length < count) return;
    waiting = undefined;
    resolve(replies);
  });
  return (commands) => {
    if (commands.length === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      waiting = { count: commands.length, replies: [], resolve };
      socket.write(commands.map(encode).join(""));
    });
  };
}

/** @param {readonly string[]} command */
function encode(command) {
  const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${command.length}\r\n${parts.join("")}`;
}

/** @param {Buffer} buffer @param {number} start @returns {{ value: unknown, end: number } | undefined} */
function parse(buffer, start) {
  const lineEnd = buffer.indexOf("\r\n", start);
  if (lineEnd === -1) return undefined;
  const line = buffer.toString("utf8", start + 1, lineEnd);
  const end = lineEnd + 2;
  switch (String.fromCharCode(buffer[start] ?? 0)) {
    case "+":
      return { value: line, end };
    case "-":
      return { value: new Error(line), end };
    case ":":
      return { value: Number(line), end };
    case "$": {
      const length = Number(line);
      if (length === -1) return { value: null, end };
      if (buffer.length < end + length + 2) return undefined;
      return { value: buffer.toString("utf8", end, end + length), end: end + length + 2 };
    }
    case "*": {
      const values = [];
      let at = end;
      for (let index = 0; index < Number(line); index += 1) {
        const item = parse(buffer, at);
        if (item === undefined) return undefined;
        values.push(item.value);
        at = item.end;
      }
      return { value: Number(line) === -1 ? null : values, end: at };
    }
    default:
      throw new Error(`not a reply of RESP2: ${line}`);
  }
}
