import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { allKinds } from "./client-kinds.ts";
import { openConnection } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await server.command("FLUSHALL");
});
afterAll(() => server.stop());

describe.each(allKinds)("$name", (kind) => {
  test("reports its library and its topology", async () => {
    const connection = await openConnection(kind, server.port);
    expect(connection.library).toBe(kind.library);
    expect(connection.topology).toBe("standalone");
  });

  test("replies to EVAL with strings, numbers, null and lists", async () => {
    const connection = await openConnection(kind, server.port);
    const script = "return {1, 'text', false, {2, KEYS[1], ARGV[1]}, redis.status_reply('FINE')}";
    const reply = await connection.send("a", ["EVAL", script, "1", "a", "b"]);
    expect(reply).toEqual([1, "text", null, [2, "a", "b"], "FINE"]);
  });

  test("replies to EVALSHA once the script is loaded, and with NOSCRIPT before", async () => {
    const connection = await openConnection(kind, server.port);
    const script = `return {KEYS[1], '${kind.name}'}`;
    const sha = createHash("sha1").update(script).digest("hex");
    await server.command("SCRIPT", "FLUSH");
    const error = await connection.send("k", ["EVALSHA", sha, "1", "k"]).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(/^NOSCRIPT /);
    expect(await connection.send("k", ["SCRIPT", "LOAD", script])).toBe(sha);
    expect(await connection.send("k", ["EVALSHA", sha, "1", "k"])).toEqual(["k", kind.name]);
  });

  test("replies to SET NX PX GET with the previous value", async () => {
    const connection = await openConnection(kind, server.port);
    const set = (owner: string) =>
      connection.send("lock", ["SET", "lock", owner, "NX", "PX", "60000", "GET"]);
    expect(await set("first")).toBeNull();
    expect(await set("second")).toBe("first");
    expect(await connection.send("free", ["SET", "free", "x", "NX", "PX", "60000"])).toBe("OK");
    expect(await connection.send("free", ["SET", "free", "x", "NX", "PX", "60000"])).toBeNull();
  });

  test.each(["ERR", "WRONGTYPE", "READONLY", "LOADING", "OOM", "BUSY", "NOPERM", "MISCONF"])(
    "keeps the server's message for an error with the code %s",
    async (code) => {
      const connection = await openConnection(kind, server.port);
      const script = `return redis.error_reply('${code} some: words here')`;
      const error = await connection.send("k", ["EVAL", script, "1", "k"]).catch((e: unknown) => e);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).toBe(`${code} some: words here`);
    },
  );

  test("keeps keys and values in any writing system intact", async () => {
    const connection = await openConnection(kind, server.port);
    const key = "замок:ключ:鍵:🔒: \r\n";
    const value = "größe\u0000🗝️";
    expect(await connection.send(key, ["SET", key, value])).toBe("OK");
    expect(await server.command("GET", key)).toBe(value);
    expect(await connection.send(key, ["GET", key])).toBe(value);
    const script = "return redis.call('GET', KEYS[1])";
    expect(await connection.send(key, ["EVAL", script, "1", key])).toBe(value);
  });

  test("gives each of many commands in flight its own reply", async () => {
    const connection = await openConnection(kind, server.port);
    const script = "return {KEYS[1], ARGV[1]}";
    const numbers = Array.from({ length: 500 }, (_, index) => String(index));
    const replies = await Promise.all(
      numbers.map((n) => connection.send(`k${n}`, ["EVAL", script, "1", `k${n}`, n])),
    );
    expect(replies).toEqual(numbers.map((n) => [`k${n}`, n]));
  });

  test("sends one long command to several servers with identical words", async () => {
    const connections = [
      await openConnection(kind, server.port),
      await openConnection(kind, server.port),
    ];
    const words = Array.from(
      { length: 60 },
      (_, n) => ["größe", "🔒", "", "a b\r\n"][n % 4] + `${n}`,
    );
    const script = "return {KEYS[1], ARGV}";
    const long = ["EVAL", script, "1", "鍵", ...words];
    const other = ["EVAL", script, "1", "k", ...words.toReversed()];
    const replies = await Promise.all(
      [long, other, long].flatMap((command) => {
        return connections.map((connection) => connection.send("k", command));
      }),
    );
    const [first, second] = [
      ["鍵", words],
      ["k", words.toReversed()],
    ];
    expect(replies).toEqual([first, first, second, second, first, first]);
  });

  test("does not change the command that it was given", async () => {
    const connection = await openConnection(kind, server.port);
    const command = Object.freeze(["EVAL", "return 1", "1", "k"]);
    await connection.send("k", command);
    expect(command).toEqual(["EVAL", "return 1", "1", "k"]);
  });
});
