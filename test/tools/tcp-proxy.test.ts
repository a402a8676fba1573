import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { TcpProxy } from "../../tools/network/tcp-proxy.mjs";
import { watchLeaks } from "../support/leaks.ts";

watchLeaks();

const open: { close(): void }[] = [];
let proxy: TcpProxy;
let received = "";

/** Starts a server that echoes every message, and closes the connection after "bye". */
beforeEach(async () => {
  received = "";
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString();
      if (received === "bye") socket.destroy();
      else socket.write(`re:${chunk.toString()}`);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  proxy = await TcpProxy.open((server.address() as AddressInfo).port);
  open.push(server, { close: () => void proxy.stop() });
});

afterEach(() => {
  for (const each of open.splice(0).toReversed()) each.close();
});

async function client(): Promise<{ socket: Socket; replies: () => string; closed: () => boolean }> {
  let replies = "";
  let closed = false;
  const socket = connect(proxy.port, "127.0.0.1");
  socket.on("data", (chunk: Buffer) => {
    replies += chunk.toString();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    closed = true;
  });
  await new Promise((resolve) => {
    socket.once("connect", resolve);
  });
  open.push({ close: () => socket.destroy() });
  return { socket, replies: () => replies, closed: () => closed };
}

test("a proxy passes bytes both ways", async () => {
  const { socket, replies } = await client();
  socket.write("a");
  await expect.poll(replies).toBe("re:a");
});

test("a proxy that heals delivers held replies to requests that arrived", async () => {
  const { socket, replies } = await client();
  proxy.hold("replies");
  socket.write("a");
  await expect.poll(() => received).toBe("a");
  await sleep(50);
  expect(replies()).toBe("");
  proxy.heal("replies", "deliver");
  await expect.poll(replies).toBe("re:a");
});

test("a proxy can hold requests back, also of new connections, and lose them for good", async () => {
  const one = await client();
  proxy.hold("requests");
  const other = await client();
  one.socket.write("a");
  other.socket.write("b");
  await sleep(50);
  expect(received).toBe("");
  proxy.heal("requests", "reset");
  await expect.poll(() => one.closed() && other.closed()).toBe(true);
  expect(received).toBe("");
});

test("a held proxy delivers later what a client sent before it closed its connection", async () => {
  const { socket } = await client();
  proxy.hold("requests");
  socket.end("a");
  await sleep(50);
  expect(received).toBe("");
  proxy.heal("requests", "deliver");
  await expect.poll(() => received).toBe("a");
});

test("a proxy can lose a reply to a request that arrived, and the connection with it", async () => {
  const { socket, replies, closed } = await client();
  proxy.loseNextReplies();
  socket.write("a");
  await expect.poll(closed).toBe(true);
  expect({ received, replies: replies() }).toEqual({ received: "a", replies: "" });
  proxy.keepReplies();
  const other = await client();
  other.socket.write("b");
  await expect.poll(other.replies).toBe("re:b");
});

test("a proxy keeps the replies of a connection that had none while replies were lost", async () => {
  const { socket, replies } = await client();
  proxy.loseNextReplies();
  proxy.keepReplies();
  socket.write("a");
  await expect.poll(replies).toBe("re:a");
});

test("a proxy can delay both directions", async () => {
  const { socket, replies } = await client();
  proxy.setDelay(60);
  const startMs = performance.now();
  socket.write("a");
  await expect.poll(replies, { interval: 5 }).toBe("re:a");
  expect(performance.now() - startMs).toBeGreaterThan(115);
});

test("a proxy closes a connection if its server closes it", async () => {
  const { socket, closed } = await client();
  socket.write("bye");
  await expect.poll(closed).toBe(true);
});
