import { createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { RedisConnection, redisCommand } from "../../tools/redis/redis-connection.mjs";
import { startRedis } from "../../tools/redis/redis-server.mjs";
import { encodeCommand, ReplyReader } from "../../tools/redis/resp.mjs";
import { watchLeaks } from "../support/leaks.ts";

watchLeaks();

/** Starts a server that does with each connection what `onData` says. Returns its port. */
async function startStub(onData: (end: () => void) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => onData(() => socket.destroy()));
    onTestFinished(() => void socket.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("a command is encoded with the lengths of its parts in bytes", () => {
  const text = encodeCommand(["SET", "ä€", ""]);
  const expected = "*3\r\n$3\r\nSET\r\n$5\r\nä€\r\n$0\r\n\r\n";
  expect(Buffer.from(text, "latin1").toString("utf8")).toBe(expected);
});

test("replies are the same however their bytes are cut", () => {
  const replies = "+OK\r\n*3\r\n:-1\r\n$-1\r\n*2\r\n$5\r\nä€\r\n-ERR no\r\n*-1\r\n*0\r\n";
  const text = Buffer.from(replies).toString("latin1");
  const expected = ["OK", [-1, null, ["ä€", new Error("ERR no")]], null, []];
  for (let size = 1; size <= text.length; size += 1) {
    const read: unknown[] = [];
    const reader = new ReplyReader((reply) => read.push(reply));
    for (let at = 0; at < text.length; at += size) reader.read(text.slice(at, at + size));
    expect(read, `in pieces of ${size}`).toEqual(expected);
  }
});

test("a connection gives each command its own reply", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const connection = await RedisConnection.open(server);
  onTestFinished(() => connection.close());
  const refused = expect(connection.send("INCR")).rejects.toThrow("wrong number of arguments");
  const sent = Array.from({ length: 3_000 }, (_, n) => connection.send("ECHO", `${n}`));
  expect(await Promise.all(sent)).toEqual(sent.map((_, n) => `${n}`));
  await refused;
  const [error, length] = await connection.sendAll([["GET"], ["RPUSH", "list", "a", "ö"]]);
  expect([error instanceof Error, length]).toEqual([true, 2]);
  expect(await server.command("LRANGE", "list", "0", "-1")).toEqual(["a", "ö"]);
});

test("a command on a broken connection rejects", async () => {
  const port = await startStub((end) => end());
  const connection = await RedisConnection.open({ port });
  await expect(connection.send("PING")).rejects.toThrow(`port ${port} closed the connection`);
  await expect(connection.send("PING")).rejects.toThrow("closed");
});

test("a command that gets no reply rejects after its limit", async () => {
  const port = await startStub(() => undefined);
  const limitMs = 50;
  await expect(redisCommand(port, ["PING"], limitMs)).rejects.toThrow("no reply from port");
});
