import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { beforeEach, describe, expect, it } from "vitest";
import { StoreError } from "../../src/core/errors.ts";
import {
  fencedDelete,
  fencedGet,
  fencedSet,
  lowerFence,
  redisFences,
} from "../../src/fencing/redis.ts";
import { watchLeaks } from "../support/leaks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { shareDatabases } from "./databases.ts";
import { rejectionOf } from "./lease-like.ts";

watchLeaks();

const databases = shareDatabases("redis");

beforeEach(async () => {
  await databases.redis.command("FLUSHALL");
});

/** Each call of the Redis guards, on one client. */
const calls: Readonly<Record<string, (client: unknown) => Promise<unknown>>> = {
  fencedSet: (client) => fencedSet(client, 7n, "key", "value"),
  fencedDelete: (client) => fencedDelete(client, 7n, "key"),
  fencedGet: (client) => fencedGet(client, "key"),
  lowerFence: (client) => lowerFence(client, 7n, "key"),
  redisFences: (client) => redisFences(client, { prefix: "" }).admit("key", 7n),
};

describe.each(Object.entries(calls))("%s", (_, call) => {
  it("rejects with StoreError if the client is not connected, and sends nothing", async () => {
    const client = new Redis(databases.redis.url, { lazyConnect: true });
    await client.connect();
    const ended = once(client, "end");
    await client.quit();
    await ended;
    const error = await rejectionOf(call(client));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/the guard of "key" did not run:.*not connected/),
      cause: expect.objectContaining({ name: "NotConnectedError" }),
    });
  });

  it("rejects with StoreError if the server refuses", async () => {
    await databases.redis.command(
      "ACL",
      "SETUSER",
      "reader",
      "on",
      ">secret",
      "~*",
      "+ping",
      "+info",
    );
    const client = createClient({
      url: databases.redis.url,
      username: "reader",
      password: "secret",
    });
    await client.connect();
    const error = await rejectionOf(call(client));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      message: expect.stringMatching(/refused the guard of "key", and nothing was written: NOPERM/),
      cause: expect.any(Error),
    });
    await client.close();
  });

  it("rejects with StoreError that says so if the reply is lost", async () => {
    const proxy = await startTcpProxy(databases.redis.port);
    const client = new Redis({
      port: proxy.port,
      lazyConnect: true,
      autoResendUnfulfilledCommands: false,
      retryStrategy: () => null,
    });
    client.on("error", () => undefined);
    await client.connect();
    proxy.holdRepliesAfter("evalsha");
    const reply = rejectionOf(call(client));
    await eventually(() => proxy.hasHeldReplies);
    proxy.cutBeforeReply();
    expect(await reply).toMatchObject({
      code: "STORE",
      message: expect.stringContaining('the guard of "key" had no reply and may have run'),
    });
  });

  it("waits for a client that connects for the first time", async () => {
    const client = new Redis(databases.redis.url);
    await call(client);
    await client.quit();
  });
});

describe("bytes in a fenced value", () => {
  it("are returned unchanged through each client", async () => {
    const io = new Redis(databases.redis.url, { lazyConnect: true });
    const node = createClient({ url: databases.redis.url });
    await Promise.all([io.connect(), node.connect()]);
    const bytes = Buffer.concat([Buffer.from([0, 255, 13, 10, 0xc3]), randomBytes(500)]);
    for (const [writer, reader] of [
      [io, node],
      [node, io],
    ]) {
      await fencedSet(writer, 7n, "bytes", new Uint8Array(bytes));
      const found = await fencedGet(reader, "bytes", { as: "buffer" });
      expect(found?.fence).toBe(7n);
      expect(found?.value?.equals(bytes)).toBe(true);
      const error = await rejectionOf(fencedGet(reader, "bytes"));
      expect(error).toMatchObject({ code: "STORE", message: expect.stringContaining('"buffer"') });
      await fencedSet(writer, 7n, "bytes", bytes.subarray(0, 3));
      expect(await fencedGet(reader, "bytes", { as: "buffer" })).toMatchObject({
        value: bytes.subarray(0, 3),
      });
      await fencedSet(writer, 7n, "bytes", Buffer.alloc(0));
      expect(await fencedGet(reader, "bytes", { as: "buffer" })).toMatchObject({
        value: Buffer.alloc(0),
      });
      await fencedSet(writer, 7n, "bytes", "ümlaut");
      expect(await fencedGet(reader, "bytes")).toEqual({ value: "ümlaut", fence: 7n });
      expect(await fencedGet(reader, "bytes", { as: "buffer" })).toMatchObject({
        value: Buffer.from("ümlaut"),
      });
      await fencedDelete(writer, 7n, "bytes");
      expect(await fencedGet(reader, "bytes", { as: "buffer" })).toMatchObject({
        value: undefined,
      });
    }
    const error = await rejectionOf(fencedGet(io, "bytes", { as: "json" } as never));
    expect(error).toMatchObject({ option: "as" });
    await Promise.all([io.quit(), node.close()]);
  });
});
