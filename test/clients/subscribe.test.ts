import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { allKinds } from "./client-kinds.ts";
import { openConnection } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** TCP sockets of clients in JavaScript, and the pipe to GLIDE's core. */
function socketCount(): number {
  const sockets = new Set(["TCPSocketWrap", "PipeWrap"]);
  return process.getActiveResourcesInfo().filter((type) => sockets.has(type)).length;
}

/** A server that no client of an earlier test is still leaving. */
async function startOwn(): Promise<RedisServer> {
  const own = await startRedis();
  onTestFinished(() => own.stop());
  return own;
}

/** Connections that the server has, without the one that asks. */
async function connectionCount(on: RedisServer): Promise<number> {
  return (
    String(await on.command("CLIENT", "LIST"))
      .trim()
      .split("\n").length - 1
  );
}

async function subscriberCount(channel: string, on: RedisServer): Promise<unknown> {
  return ((await on.command("PUBSUB", "NUMSUB", channel)) as unknown[])[1];
}

describe.each(allKinds)("$name", (kind) => {
  test("delivers the messages of each channel to its listeners until they leave", async () => {
    const connection = await openConnection(kind, server.port);
    const heard: string[] = [];
    const leaveFirst = await connection.subscribe("канал", (m) => heard.push(`first ${m}`));
    const leaveSecond = await connection.subscribe("канал", (m) => heard.push(`second ${m}`));
    const leaveOther = await connection.subscribe("other", (m) => heard.push(`other ${m}`));
    await server.command("PUBLISH", "канал", "één");
    await server.command("PUBLISH", "other", "two");
    await eventually(() => heard.length === 3);
    expect(heard).toEqual(["first één", "second één", "other two"]);
    await leaveFirst();
    await leaveOther();
    await server.command("PUBLISH", "other", "three");
    await server.command("PUBLISH", "канал", "four");
    await eventually(() => heard.length === 4);
    expect(heard[3]).toBe("second four");
    await leaveSecond();
    await leaveSecond();
  });

  test("counts one listener that was given twice as two", async () => {
    const connection = await openConnection(kind, server.port);
    const heard: string[] = [];
    const listener = (message: string) => heard.push(message);
    const leave = await connection.subscribe("twice", listener);
    await connection.subscribe("twice", listener);
    await leave();
    await server.command("PUBLISH", "twice", "once");
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(["once"]);
  });

  test("opens one connection for all channels and closes it after the last", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const channels = Array.from({ length: 20 }, (_, index) => `channel-${index}`);
    const leaves = await Promise.all(channels.map((c) => connection.subscribe(c, () => undefined)));
    expect(await connectionCount(own)).toBe(before + 1);
    await Promise.all(leaves.map((leave) => leave()));
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
    expect(await connection.send("k", ["PING"])).toBe("PONG");
  });

  test("closes what it opened and nothing else", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const leave = await connection.subscribe("closing", () => undefined);
    await connection.close();
    await connection.close();
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
    await leave();
    expect(await connection.send("k", ["PING"])).toBe("PONG");
  });

  test("leaves no connection behind when it is closed while it still subscribes", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const subscribing = connection.subscribe("hasty", () => undefined).catch(() => undefined);
    await connection.close();
    await subscribing;
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
  });

  test("subscribes again after the last left and after close", async () => {
    const connection = await openConnection(kind, server.port);
    const heard: string[] = [];
    const leave = await connection.subscribe("again", () => heard.push("first"));
    const stay = await connection.subscribe("stay", () => undefined);
    // Leaving and returning at once: the last word counts.
    const left = leave();
    await connection.subscribe("again", () => heard.push("second"));
    await left;
    // GLIDE tells us before its server knows.
    await eventually(async () => (await subscriberCount("again", server)) === 1);
    await stay();
    await connection.close();
    await connection.subscribe("again", () => heard.push("third"));
    await eventually(async () => (await subscriberCount("again", server)) === 1);
    await server.command("PUBLISH", "again", "x");
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(["third"]);
  });

  test("listens again after the server was restarted", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const heard: string[] = [];
    await connection.subscribe("back", (message) => heard.push(message));
    await own.restart();
    await eventually(async () => (await subscriberCount("back", own)) === 1);
    await own.command("PUBLISH", "back", "hello");
    await eventually(() => heard.length > 0);
    expect(heard).toEqual(["hello"]);
  });

  test("rejects when the server is down, and can subscribe once it is back", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    await own.kill();
    await expect(connection.subscribe("c", () => undefined)).rejects.toThrow(Error);
    await own.restart();
    await eventually(() => connection.subscribe("c", () => undefined));
    expect(await subscriberCount("c", own)).toBe(1);
  });
});
