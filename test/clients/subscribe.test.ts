import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { allKinds } from "./client-kinds.ts";
import { openConnection, subscribed } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** Number of TCP sockets of JavaScript clients, plus the pipes to GLIDE's core. */
function socketCount(): number {
  const sockets = new Set(["TCPSocketWrap", "PipeWrap"]);
  return process.getActiveResourcesInfo().filter((type) => sockets.has(type)).length;
}

/** Starts a server to which no client of an earlier test is still connected. */
async function startOwn(): Promise<RedisServer> {
  const own = await startRedis();
  onTestFinished(() => own.stop());
  return own;
}

/** Number of connections of the server, without the one that counts them. */
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
    const received: string[] = [];
    const leaveFirst = await subscribed(connection, "канал", (m) => received.push(`first ${m}`));
    const leaveSecond = await subscribed(connection, "канал", (m) => received.push(`second ${m}`));
    const leaveOther = await subscribed(connection, "other", (m) => received.push(`other ${m}`));
    await server.command("PUBLISH", "канал", "één");
    await server.command("PUBLISH", "other", "two");
    await eventually(() => received.length === 3);
    expect(received).toEqual(["first één", "second één", "other two"]);
    await leaveFirst();
    await leaveOther();
    await server.command("PUBLISH", "other", "three");
    await server.command("PUBLISH", "канал", "four");
    await eventually(() => received.length === 4);
    expect(received[3]).toBe("second four");
    await leaveSecond();
    await leaveSecond();
  });

  test("counts a listener that was added twice as two subscriptions", async () => {
    const connection = await openConnection(kind, server.port);
    const received: string[] = [];
    const listener = (message: string) => received.push(message);
    const leave = await subscribed(connection, "twice", listener);
    await subscribed(connection, "twice", listener);
    await leave();
    await server.command("PUBLISH", "twice", "once");
    await eventually(() => received.length > 0);
    expect(received).toEqual(["once"]);
  });

  test("opens one connection for all channels and closes it after the last", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const channels = Array.from({ length: 20 }, (_, index) => `channel-${index}`);
    const leaves = await Promise.all(channels.map((c) => subscribed(connection, c)));
    expect(await connectionCount(own)).toBe(before + 1);
    await Promise.all(leaves.map((leave) => leave()));
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
    expect(await connection.send("k", ["PING"])).toBe("PONG");
  });

  test("closes the connection that it opened and no other", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const leave = await subscribed(connection, "closing");
    await leave();
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
    await leave();
    expect(await connection.send("k", ["PING"])).toBe("PONG");
  });

  test("leaves no connection behind if it is ended before it is ready", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const before = await connectionCount(own);
    const socketsBefore = socketCount();
    const calls: string[] = [];
    const listener = {
      onReady: () => calls.push("ready"),
      onMessage: () => calls.push("message"),
      onLost: () => calls.push("lost"),
    };
    // Ends it in the same turn, while it connects, during its handshake, and while it subscribes.
    for (let turns = 0; turns < 12; turns += 1) {
      const end = connection.subscribe("hasty", listener);
      for (let turn = 0; turn < turns; turn += 1) await setImmediate();
      const count = calls.length;
      await end();
      expect(calls.length).toBe(count);
    }
    expect(calls).not.toContain("lost");
    await eventually(async () => (await connectionCount(own)) === before);
    await eventually(() => socketCount() <= socketsBefore);
  });

  test("subscribes again after the last subscriber left", async () => {
    const connection = await openConnection(kind, server.port);
    const received: string[] = [];
    const leave = await subscribed(connection, "again", () => received.push("first"));
    const stay = await subscribed(connection, "stay");
    // Unsubscribes and subscribes at once: the last call decides.
    const left = leave();
    const leaveSecond = await subscribed(connection, "again", () => received.push("second"));
    await left;
    // GLIDE confirms before its server has the subscription.
    await eventually(async () => (await subscriberCount("again", server)) === 1);
    await stay();
    await leaveSecond();
    await subscribed(connection, "again", () => received.push("third"));
    await eventually(async () => (await subscriberCount("again", server)) === 1);
    await server.command("PUBLISH", "again", "x");
    await eventually(() => received.length > 0);
    expect(received).toEqual(["third"]);
  });

  test("rejects when the server is down, and can subscribe once it is back", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    await own.kill();
    await expect(subscribed(connection, "c")).rejects.toThrow(Error);
    await own.restart();
    await eventually(() => subscribed(connection, "c"));
    expect(await subscriberCount("c", own)).toBe(1);
  });

  test("ends only the subscription that is ended, while others exist", async () => {
    const connection = await openConnection(kind, server.port);
    const received: string[] = [];
    const leaveOwn = await subscribed(connection, "own", () => received.push("own"));
    await subscribed(connection, "other", () => received.push("other"));
    await leaveOwn();
    await server.command("PUBLISH", "own", "x");
    await server.command("PUBLISH", "other", "x");
    await eventually(() => received.length > 0);
    expect(received).toEqual(["other"]);
  });
});

// GLIDE subscribes again by itself, and does not report the loss.
describe.each(allKinds.filter(({ showsState }) => showsState))("$name", (kind) => {
  test("reports each subscription that is lost, once, and can subscribe again", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const lost: string[] = [];
    await subscribed(connection, "a", undefined, () => lost.push("a"));
    await subscribed(connection, "a", undefined, () => lost.push("a"));
    await subscribed(connection, "b", undefined, () => lost.push("b"));
    expect(await own.command("CLIENT", "KILL", "TYPE", "pubsub")).toBe(1);
    await eventually(() => lost.length >= 3);
    expect(lost.toSorted()).toEqual(["a", "a", "b"]);
    expect(await subscriberCount("a", own)).toBe(0);
    const received: string[] = [];
    await subscribed(connection, "a", (message) => received.push(message));
    await own.command("PUBLISH", "a", "hello");
    await eventually(() => received.length > 0);
    expect([received, lost.length]).toEqual([["hello"], 3]);
  });

  test("reports a subscription lost by a restart, and one that the server denies", async () => {
    const own = await startOwn();
    const connection = await openConnection(kind, own.port);
    const lost: unknown[] = [];
    await subscribed(connection, "a", undefined, (cause) => lost.push(cause));
    await own.restart();
    await eventually(() => lost.length > 0);
    await eventually(() => connection.send("k", ["PING"]));
    await own.command("ACL", "SETUSER", "default", "resetchannels", "&allowed");
    await expect(subscribed(connection, "denied")).rejects.toThrow(/^NOPERM/);
    await subscribed(connection, "allowed", undefined, (cause) => lost.push(cause));
    await expect(subscribed(connection, "denied")).rejects.toThrow(/^NOPERM/);
    expect(lost.length).toBe(1);
    await own.command("ACL", "SETUSER", "default", "resetchannels");
    await eventually(() => lost.length === 2);
  });
});
