import { Decoder, ProtocolVersion } from "@valkey/valkey-glide";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import { serverError } from "../../src/clients/valkey-glide-errors.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { glideKinds } from "./client-kinds.ts";
import { openConnection, subscribed } from "./open-connection.ts";

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe.each(glideKinds)("$name", (kind) => {
  test.each([
    { defaultDecoder: Decoder.Bytes },
    { protocol: ProtocolVersion.RESP2 },
    { protocol: ProtocolVersion.RESP3, lazyConnect: true },
  ])("replies and delivers strings with %o", async (options) => {
    const connection = await openConnection(kind, server.port, options);
    const script = "return {1, 'a', false, {KEYS[1]}, redis.status_reply('FINE')}";
    expect(await connection.send("k", ["EVAL", script, "1", "k"])).toEqual([
      1,
      "a",
      null,
      ["k"],
      "FINE",
    ]);
    const received: unknown[] = [];
    await subscribed(connection, "decoded", (message) => received.push(message));
    await server.command("PUBLISH", "decoded", "hello");
    await eventually(() => received.length > 0);
    expect(received).toEqual(["hello"]);
  });

  test("has no subscribe for a version that cannot subscribe after it was created", () => {
    const old = { customCommand() {}, close() {}, getPubSubMessage() {}, config: {} };
    const connection = connectionOf(old);
    expect(connection?.library).toBe("valkey-glide");
    expect(connection).not.toHaveProperty("subscribe");
  });

  test("passes on errors of the library unchanged", () => {
    const timeout = new Error("timed out");
    expect(serverError(timeout)).toBe(timeout);
    expect(serverError("text")).toBe("text");
  });
});
