import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { ioredisKinds } from "./client-kinds.ts";
import { adapt, openConnection, subscribed } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await server.command("FLUSHALL");
});
afterAll(() => server.stop());

interface Traced {
  sendCommand(command: { args: unknown; toWritable(): unknown }): Promise<unknown>;
}

const setBoth =
  "redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], KEYS[1]); return 1";

describe.each(ioredisKinds)("$name", (kind) => {
  test("encodes a long command once for all servers, and shows its arguments to tracing tools", async () => {
    const texts: unknown[] = [];
    const args: unknown[] = [];
    const words = Array.from({ length: 40 }, (_, n) => `word-${n}`);
    const long = ["EVAL", "return #ARGV", "0", ...words];
    for (let count = 0; count < 2; count += 1) {
      const opened = await kind.open(server.port);
      const connection = adapt(opened);
      const client = opened.client as Traced;
      const send = client.sendCommand.bind(client);
      client.sendCommand = (command) => {
        args.push(command.args);
        texts.push(command.toWritable());
        return send(command);
      };
      expect(await connection.send("k", long)).toBe(40);
    }
    expect(args).toEqual([long.slice(1), long.slice(1)]);
    expect(args[1]).toBe(args[0]);
    expect(texts[1]).toBe(texts[0]);
  });

  test("uses one command class for all servers, with the bytes of each command counted", async () => {
    const classes = new Set<unknown>();
    for (let count = 0; count < 2; count += 1) {
      const opened = await kind.open(server.port);
      const connection = adapt(opened);
      const client = opened.client as Traced;
      const send = client.sendCommand.bind(client);
      client.sendCommand = (command) => {
        classes.add(command.constructor);
        return send(command);
      };
      expect(await connection.send("k", ["SET", "k", "žluťoučký 🔒"])).toBe("OK");
      expect(await connection.send("k", ["GET", "k"])).toBe("žluťoučký 🔒");
    }
    expect(classes.size).toBe(1);
  });

  test("applies the user's keyPrefix to every key and to nothing else", async () => {
    const connection = await openConnection(kind, server.port, { keyPrefix: "app:" });
    await connection.send("a", ["EVAL", setBoth, "2", "a", "b", "value"]);
    const sha = String(await connection.send("a", ["SCRIPT", "LOAD", setBoth]));
    await connection.send("c", ["EVALSHA", sha, "2", "c", "d", "value"]);
    await connection.send("e", ["SET", "e", "value", "NX", "PX", "60000"]);
    expect(await connection.send("e", ["GET", "e"])).toBe("value");
    const many = Array.from({ length: 40 }, () => "value");
    await connection.send("f", ["EVALSHA", sha, "2", "f", "g", ...many]);
    const keys = (await server.command("KEYS", "*")) as string[];
    const all = ["a", "b", "c", "d", "e", "f", "g"].map((key) => `app:${key}`);
    expect(keys.sort()).toEqual(all);
    expect(await server.command("GET", "app:a")).toBe("value");
    expect(await server.command("GET", "app:b")).toBe("app:a");
  });

  test("leaves the user's keyPrefix out of channels", async () => {
    const connection = await openConnection(kind, server.port, { keyPrefix: "app:" });
    const received: string[] = [];
    await subscribed(connection, "channel", (message) => received.push(message));
    await server.command("PUBLISH", "channel", "hello");
    await eventually(() => received.length > 0);
    expect(received).toEqual(["hello"]);
  });

  test("replies with integers as strings if the user set stringNumbers", async () => {
    const connection = await openConnection(kind, server.port, { stringNumbers: true });
    expect(await connection.send("n", ["EVAL", "return {1, 'a', false}", "1", "n"])).toEqual([
      "1",
      "a",
      null,
    ]);
    const received: string[] = [];
    await subscribed(connection, "numbers", (message) => received.push(message));
    await server.command("PUBLISH", "numbers", "1");
    await eventually(() => received.length > 0);
  });

  test("works with the user's auto-pipelining, including errors", async () => {
    const connection = await openConnection(kind, server.port, {
      enableAutoPipelining: true,
      keyPrefix: "app:",
    });
    const replies = await Promise.allSettled([
      connection.send("a", ["EVAL", setBoth, "2", "a", "b", "value"]),
      connection.send("a", ["EVALSHA", "0".repeat(40), "1", "a"]),
      connection.send("c", ["SET", "c", "value"]),
    ]);
    expect(replies.map((reply) => reply.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((replies[1] as PromiseRejectedResult).reason).toMatchObject({
      message: expect.stringMatching(/^NOSCRIPT /),
    });
    const keys = (await server.command("KEYS", "*")) as string[];
    expect(keys.sort()).toEqual(["app:a", "app:b", "app:c"]);
    await subscribed(connection, "piped");
  });

  test("works with the options of a cautious user", async () => {
    const connection = await openConnection(kind, server.port, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      commandTimeout: 5000,
      showFriendlyErrorStack: true,
      db: 3,
    });
    await connection.send("k", ["SET", "k", "v"]);
    expect(
      await server.command("EVAL", "redis.call('SELECT', 3) return redis.call('GET', 'k')", "0"),
    ).toBe("v");
    await subscribed(connection, "careful");
  });
});

describe.each([{ protocol: 2 }, { protocol: 3 }, { protocol: 3, replyMapping: "resp3" }])(
  "ioredis 6 with %o",
  (options) => {
    const kind = ioredisKinds.find(({ name }) => name === "ioredis 6");

    test("replies and delivers the same values", async () => {
      if (kind === undefined) throw new Error("ioredis 6 is not among the kinds");
      const connection = await openConnection(kind, server.port, options);
      const reply = await connection.send("k", [
        "EVAL",
        "return {1, 'a', false, {KEYS[1]}}",
        "1",
        "k",
      ]);
      expect(reply).toEqual([1, "a", null, ["k"]]);
      expect(await connection.send("k", ["SET", "k", "v", "NX", "GET", "PX", "60000"])).toBeNull();
      const received: string[] = [];
      await subscribed(connection, "resp", (message) => received.push(message));
      await server.command("PUBLISH", "resp", "hello");
      await eventually(() => received.length > 0);
      expect(received).toEqual(["hello"]);
    });
  },
);
