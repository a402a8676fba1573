import { RESP_TYPES } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { nodeRedisKinds } from "./client-kinds.ts";
import { adapt, openConnection, subscribed } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await server.command("FLUSHALL");
});
afterAll(() => server.stop());

const buffers = {
  [RESP_TYPES.BLOB_STRING]: Buffer,
  [RESP_TYPES.SIMPLE_STRING]: Buffer,
  [RESP_TYPES.NUMBER]: String,
};

describe.each(nodeRedisKinds)("$name", (kind) => {
  describe.each([2, 3])("with RESP %i", (RESP) => {
    test("replies with strings for any type mapping of the user", async () => {
      const opened = await kind.open(server.port, {
        RESP,
        commandOptions: { typeMapping: buffers },
      });
      const connection = adapt(opened);
      const script = "return {1, 'a', false, {KEYS[1]}, redis.status_reply('FINE')}";
      expect(await connection.send("k", ["EVAL", script, "1", "k"])).toEqual([
        1,
        "a",
        null,
        ["k"],
        "FINE",
      ]);
      expect(await connection.send("k", ["SET", "k", "v"])).toBe("OK");
      // The user's own calls keep the user's mapping.
      const client = opened.client as unknown as { get(key: string): Promise<unknown> };
      expect(await client.get("k")).toEqual(Buffer.from("v"));
    });

    test("delivers strings for any type mapping of the user", async () => {
      const options = { RESP, commandOptions: { typeMapping: buffers } };
      const connection = await openConnection(kind, server.port, options);
      const received: unknown[] = [];
      await subscribed(connection, "mapped", (message) => received.push(message));
      await server.command("PUBLISH", "mapped", "hello");
      await eventually(() => received.length > 0);
      expect(received).toEqual(["hello"]);
    });
  });

  test("recognises a client behind withCommandOptions and withTypeMapping", async () => {
    const opened = await kind.open(server.port);
    const client = opened.client as unknown as {
      withTypeMapping(mapping: object): unknown;
      withCommandOptions(options: object): unknown;
    };
    adapt(opened);
    const mapped = connectionOf(client.withTypeMapping(buffers));
    expect(await mapped?.send("k", ["ECHO", "text"])).toBe("text");
    const timed = connectionOf(client.withCommandOptions({ timeout: 60_000 }));
    expect(await timed?.send("k", ["ECHO", "text"])).toBe("text");
  });

  test("starts no timeout for a command, even if the user configured one", async () => {
    const connection = await openConnection(kind, server.port, {
      commandOptions: { timeout: 60_000 },
    });
    const timeout = vi.spyOn(AbortSignal, "timeout");
    try {
      expect(await connection.send("k", ["PING"])).toBe("PONG");
      expect(timeout).not.toHaveBeenCalled();
    } finally {
      timeout.mockRestore();
    }
  });

  test("works without the user's offline queue", async () => {
    const connection = await openConnection(kind, server.port, { disableOfflineQueue: true });
    expect(await connection.send("k", ["PING"])).toBe("PONG");
    await subscribed(connection, "offline");
  });
});

describe("node-redis 6", () => {
  const kind = nodeRedisKinds.find(({ name }) => name === "node-redis 6");

  test("applies the user's keyPrefix to every key and to nothing else", async () => {
    if (kind === undefined) throw new Error("node-redis 6 is not among the kinds");
    const connection = await openConnection(kind, server.port, { keyPrefix: "app:" });
    const script = "redis.call('SET', KEYS[1], ARGV[1]); redis.call('SET', KEYS[2], KEYS[1])";
    await connection.send("a", ["EVAL", script, "2", "a", "b", "value"]);
    const sha = String(await connection.send("a", ["SCRIPT", "LOAD", script]));
    await connection.send("c", ["EVALSHA", sha, "2", "c", "d", "value"]);
    await connection.send("e", ["SET", "e", "e", "NX", "PX", "60000"]);
    expect(await connection.send("e", ["GET", "e"])).toBe("e");
    expect(await connection.send("a", ["MGET", "a", "b"])).toEqual(["value", "app:a"]);
    expect(await connection.send("k", ["ECHO", "text"])).toBe("text");
    const keys = (await server.command("KEYS", "*")) as string[];
    expect(keys.sort()).toEqual(["app:a", "app:b", "app:c", "app:d", "app:e"]);
    const received: string[] = [];
    await subscribed(connection, "channel", (message) => received.push(message));
    await server.command("PUBLISH", "channel", "hello");
    await eventually(() => received.length > 0);
  });
});
