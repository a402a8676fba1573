import { afterAll, beforeAll, expect, test } from "vitest";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisSentinel, startRedisSentinel } from "../support/redis-sentinel.ts";
import { adapt, subscribed } from "./open-connection.ts";
import { sentinelLibraries } from "./sentinel-clients.ts";

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startRedisSentinel();
});
afterAll(() => sentinel.stop());

test.each(sentinelLibraries)("the master is served through $name", async ({ name, open }) => {
  const opened = open(sentinel);
  const connection = adapt(opened);
  expect(connection.topology).toBe("standalone");
  await expect(connection.send("k", ["SET", "early", "x"])).rejects.toThrow(NotConnectedError);
  await opened.connect().catch(() => undefined);
  await eventually(() => connection.send("k", ["PING"]));
  expect(await connection.send(name, ["SET", name, "v", "NX", "GET"])).toBeNull();
  expect(
    await connection.send(name, ["EVAL", "return redis.call('GET', KEYS[1])", "1", name]),
  ).toBe("v");
  expect(await sentinel.master.command("EXISTS", "early")).toBe(0);
  if (name === "node-redis 5") {
    // The Sentinel client of this library cannot be duplicated.
    expect(connection).not.toHaveProperty("subscribe");
    return;
  }
  const received: string[] = [];
  const leave = await subscribed(connection, "channel", (message) => received.push(message));
  await sentinel.master.command("PUBLISH", "channel", "hello");
  await eventually(() => received.length > 0);
  expect(received).toEqual(["hello"]);
  await leave();
});

test("every library follows a failover", async () => {
  const opened = sentinelLibraries.map(({ open }) => open(sentinel));
  const connections = opened.map((client) => adapt(client));
  await Promise.all(opened.map((client) => client.connect()));
  await sentinel.master.kill();
  await eventually(async () => (await sentinel.masterPort()) === sentinel.replica.port);
  await Promise.all(
    connections.map((connection, index) =>
      eventually(async () => {
        await connection.send("k", ["SET", `after-${index}`, "x"]);
        return (await sentinel.replica.command("EXISTS", `after-${index}`)) === 1;
      }),
    ),
  );
});
