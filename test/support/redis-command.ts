import { connect } from "node:net";

/**
 * One command over a socket of its own, in RESP2, with no client library: what a test knows about a
 * server must not depend on the adapters under test.
 */
export function redisCommand(
  port: number,
  command: readonly string[],
  timeoutMs = 10_000,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let received = Buffer.alloc(0);
    const settle = (act: () => void) => {
      socket.destroy();
      act();
    };
    socket.setTimeout(timeoutMs, () =>
      settle(() => reject(new Error(`no reply from port ${port} in ${timeoutMs} ms`))),
    );
    socket.once("error", (error) => settle(() => reject(error)));
    socket.once("close", () => reject(new Error(`port ${port} closed the connection`)));
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const reply = parseReply(received, 0);
      if (reply === undefined) return;
      const { value } = reply;
      settle(() => (value instanceof Error ? reject(value) : resolve(value)));
    });
    socket.write(encodeCommand(command));
  });
}

function encodeCommand(command: readonly string[]): string {
  const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${command.length}\r\n${parts.join("")}`;
}

interface Parsed {
  readonly value: unknown;
  readonly end: number;
}

/** Reads one reply at `start`; undefined while bytes are missing. */
function parseReply(buffer: Buffer, start: number): Parsed | undefined {
  const lineEnd = buffer.indexOf("\r\n", start);
  if (lineEnd === -1) return undefined;
  const line = buffer.toString("utf8", start + 1, lineEnd);
  const end = lineEnd + 2;
  const kind = String.fromCharCode(buffer[start] ?? 0);
  switch (kind) {
    case "+":
      return { value: line, end };
    case "-":
      return { value: new Error(line), end };
    case ":":
      return { value: Number(line), end };
    case "$":
      return parseBulk(buffer, end, Number(line));
    case "*":
      return parseArray(buffer, end, Number(line));
    default:
      throw new Error(`not a RESP2 reply: ${kind}${line}`);
  }
}

function parseBulk(buffer: Buffer, start: number, length: number): Parsed | undefined {
  if (length === -1) return { value: null, end: start };
  const end = start + length;
  if (buffer.length < end + 2) return undefined;
  return { value: buffer.toString("utf8", start, end), end: end + 2 };
}

function parseArray(buffer: Buffer, start: number, length: number): Parsed | undefined {
  if (length === -1) return { value: null, end: start };
  const values: unknown[] = [];
  let end = start;
  for (let index = 0; index < length; index += 1) {
    const item = parseReply(buffer, end);
    if (item === undefined) return undefined;
    values.push(item.value);
    end = item.end;
  }
  return { value: values, end };
}
