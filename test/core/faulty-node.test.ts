import { describe, expect, test } from "vitest";
import { NotConnectedError, type RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import { faultyNode, ManualClock, settle } from "../../src/testing/index.ts";

/** Returns a faulty node on a connection that replies with a counter, and with an error to BAD. */
function setUp() {
  const clock = new ManualClock();
  const ran: string[] = [];
  const connection: RedisConnection = {
    library: "none",
    topology: "standalone",
    async send(_key, command) {
      ran.push(command.join(" "));
      if (command[0] === "BAD") throw new Error("ERR unknown command");
      return ran.length;
    },
  };
  return { clock, ran, node: faultyNode(connection, clock) };
}

/** Collects the outcome of a reply. */
function watch(reply: Promise<unknown>): { readonly settled: unknown[] } {
  const settled: unknown[] = [];
  reply.then(
    (value) => settled.push(value),
    (error: unknown) => settled.push(error),
  );
  return { settled };
}

test("a faulty node is accepted as a client, and passes everything on if there is no fault", async () => {
  const { node, ran } = setUp();
  expect(connectionOf(node)).toBe(node);
  expect(await node.send("k", ["GET", "k"])).toBe(1);
  await expect(node.send("k", ["BAD"])).rejects.toThrow("ERR unknown command");
  expect(ran).toEqual(["GET k", "BAD"]);
  expect(node.sent).toEqual([
    { key: "k", command: ["GET", "k"], fault: undefined },
    { key: "k", command: ["BAD"], fault: undefined },
  ]);
  node.forget();
  expect(node.sent).toEqual([]);
});

test("a faulty node can subscribe if its connection can", async () => {
  const calls: string[] = [];
  const connection: RedisConnection = {
    library: "none",
    topology: "standalone",
    send: () => Promise.resolve("OK"),
    subscribe(this: unknown, channel, listener) {
      expect(this).toBe(connection);
      listener.onMessage(channel);
      return () => Promise.resolve();
    },
  };
  const node = faultyNode(connection, new ManualClock());
  const listener = { onReady() {}, onMessage: (text: string) => calls.push(text), onLost() {} };
  await node.subscribe?.("channel", listener)();
  expect(calls).toEqual(["channel"]);
  expect(setUp().node.subscribe).toBeUndefined();
});

describe("a fault", () => {
  test("delays a reply to a command that has run", async () => {
    const { node, ran, clock } = setUp();
    node.inject({ kind: "delay-reply", ms: 100 });
    const { settled } = watch(node.send("", ["PING"]));
    await clock.advance(99);
    expect([ran, settled]).toEqual([["PING"], []]);
    await clock.advance(1);
    expect(settled).toEqual([1]);
  });

  test("delays an error reply too", async () => {
    const { node, clock } = setUp();
    node.inject({ kind: "delay-reply", ms: 100 });
    const { settled } = watch(node.send("", ["BAD"]));
    await clock.advance(99);
    expect(settled).toEqual([]);
    await clock.advance(1);
    expect(settled).toEqual([new Error("ERR unknown command")]);
  });

  test("delays a command on its way to the server", async () => {
    const { node, ran, clock } = setUp();
    node.inject({ kind: "delay-request", ms: 100 });
    const { settled } = watch(node.send("", ["PING"]));
    await clock.advance(99);
    expect([ran, settled]).toEqual([[], []]);
    await clock.advance(1);
    expect([ran, settled]).toEqual([["PING"], [1]]);
  });

  test("loses a reply, or the command itself", async () => {
    const { node, ran, clock } = setUp();
    node.inject({ kind: "lose-reply" }, { times: 1 });
    node.inject({ kind: "lose-request" }, { times: 1 });
    const replies = [watch(node.send("", ["ONE"])), watch(node.send("", ["TWO"]))];
    await clock.advance(60_000);
    expect(ran).toEqual(["ONE"]);
    expect(replies.map(({ settled }) => settled)).toEqual([[], []]);
    expect(node.sent.map(({ fault }) => fault)).toEqual(["lose-reply", "lose-request"]);
  });

  test("holds replies and commands until they are let go, oldest first", async () => {
    const { node, ran } = setUp();
    node.inject({ kind: "hold-reply" }, { when: ([name]) => name === "ONE" });
    node.inject({ kind: "hold-request" }, { when: ([name]) => name === "TWO" });
    const one = watch(node.send("", ["ONE"]));
    await settle();
    const two = watch(node.send("", ["TWO"]));
    await settle();
    expect([ran, node.heldCount, one.settled]).toEqual([["ONE"], 2, []]);
    node.letGo(1);
    await settle();
    expect([ran, node.heldCount, one.settled]).toEqual([["ONE"], 1, [1]]);
    node.letGo();
    await settle();
    expect([ran, node.heldCount, two.settled]).toEqual([["ONE", "TWO"], 0, [2]]);
  });

  test("refuses a command with an error of the server, and the command does not run", async () => {
    const { node, ran } = setUp();
    node.inject({ kind: "error", message: "LOADING Redis is loading" });
    await expect(node.send("", ["PING"])).rejects.toThrow(/^LOADING /);
    expect(ran).toEqual([]);
  });

  test("breaks the connection after the command has run", async () => {
    const { node, ran } = setUp();
    node.inject({ kind: "break" });
    await expect(node.send("", ["PING"])).rejects.toThrow("closed while a command was under way");
    expect(ran).toEqual(["PING"]);
  });

  test("disconnects, and reports that nothing was sent", async () => {
    const { node, ran } = setUp();
    node.inject({ kind: "disconnect" });
    await expect(node.send("", ["PING"])).rejects.toBeInstanceOf(NotConnectedError);
    expect(ran).toEqual([]);
  });

  test("runs a command twice and returns the second reply", async () => {
    const { node, ran } = setUp();
    node.inject({ kind: "duplicate" });
    expect(await node.send("", ["INCR"])).toBe(2);
    expect(ran).toEqual(["INCR", "INCR"]);
  });

  test("affects only the commands in its scope, and only as often as requested", async () => {
    const { node } = setUp();
    node.inject({ kind: "disconnect" }, { when: (_, key) => key === "a", times: 2 });
    expect(await node.send("b", ["PING"])).toBe(1);
    await expect(node.send("a", ["PING"])).rejects.toThrow();
    await expect(node.send("a", ["PING"])).rejects.toThrow();
    expect(await node.send("a", ["PING"])).toBe(2);
  });

  test("ends when its handle is called, or when the node heals", async () => {
    const { node } = setUp();
    const end = node.inject({ kind: "disconnect" });
    node.inject({ kind: "hold-reply" });
    await expect(node.send("", ["PING"])).rejects.toThrow();
    end();
    const { settled } = watch(node.send("", ["PING"]));
    await settle();
    expect(settled).toEqual([]);
    node.heal();
    await settle();
    expect(settled).toEqual([1]);
    expect(await node.send("", ["PING"])).toBe(2);
  });
});
