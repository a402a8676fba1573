import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, ForeignHolderError, type Locks } from "../../src/index.ts";
import { redis, redlock, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import {
  collect,
  connect,
  openLocks,
  rejection,
  shareRedis,
  watchConnection,
  type WatchedConnection,
} from "../support/redis-harness.ts";

/**
 * Other programs keep other values under the names that we lock. A value that Holdfast did not
 * write counts as held: it has no label and no fence, is not listed, and is deleted only on
 * request.
 */

const bench = shareRedis(3);

const uuid = "550e8400-e29b-41d4-a716-446655440000";
const notOurs = [
  ["a UUID", uuid],
  ["a slug", "how-to-lock-a-resource-in-2026"],
  ["an owner of Redisson", `${uuid}:17`],
  ["base64 with a count", "ptfnI7-6zF0hOH7z00Gq2w-1"],
  ["the same with a label and a fence", "ptfnI7-6zF0hOH7z00Gq2w-1@report|1795030091517000"],
  ["a random part that is too short", "hf:ptfnI7-6zF0hOH7z00Gq2-1"],
  ["a counter of zero", "hf:ptfnI7-6zF0hOH7z00Gq2w-0"],
  ["a label that is not encoded", "hf:ptfnI7-6zF0hOH7z00Gq2w-1@a b|7"],
  ["a fence with a sign", "hf:ptfnI7-6zF0hOH7z00Gq2w-1|-7"],
  ["a fence beyond any", "hf:ptfnI7-6zF0hOH7z00Gq2w-1|99999999999999999"],
  ["the mark and a line break", "hf:ptfnI7-6zF0hOH7z00Gq2w-1@a\nb"],
  ["nothing", ""],
] as const;

const longest = 1_000_000;
/** Longer than such a value takes on a busy machine. */
const patient = { nodeTimeout: "10s" } as const;
const dialects: readonly (readonly [string, RedisStoreOptions])[] = [
  ["with fences", {}],
  ["without fences", { fencing: false }],
];

async function single(options: RedisStoreOptions = {}): Promise<Locks> {
  const locks = createLocks(redis(await connect(bench.server(0).port), options), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

/** Sets this value on all servers until the test is over. */
async function holdEverywhere(key: string, value: string, ...rest: readonly string[]) {
  for (const server of bench.servers) await server.command("SET", key, value, ...rest);
  onTestFinished(async () => {
    for (const server of bench.servers) await server.command("DEL", key);
  });
}

describe("a value that Holdfast did not write", () => {
  test.each(notOurs)("%s is held, is not listed, and is not deleted", async (_, value) => {
    const locks = await bench.locks();
    await holdEverywhere("taken", value);
    expect(await locks.tryAcquire("taken")).toBeUndefined();
    const seen = await locks.inspect("taken");
    expect(seen).toMatchObject({ state: "held", foreign: true, neverExpires: true });
    expect(seen).toMatchObject({ label: undefined, fence: undefined });
    expect(await locks.list()).toEqual([]);
    for (const given of ["taken", seen]) {
      const refused = await rejection(locks.break(given));
      expect(refused).toBeInstanceOf(ForeignHolderError);
      expect(refused).toMatchObject({ code: "FOREIGN_HOLDER", type: "string" });
      expect(refused).toMatchObject({ resources: ["taken"] });
      expect(String(refused)).toContain("foreign: true");
      expect(String(refused)).not.toContain("\n");
    }
    expect(await bench.values("taken")).toEqual([value, value, value]);
    expect(await locks.break(seen, { foreign: true })).toMatchObject({ broken: true });
    // The lock that gave the break its fence is released on the last server a moment later.
    await bench.untilFree();
  });

  test("our locks are listed and broken as before, with any text as label", async () => {
    const locks = await bench.locks();
    const label = "ünï|code @ 100% (a'b)\n~!*";
    const lease = await locks.acquire("a", { label });
    await bench.valuesEverywhere("a");
    expect(await locks.list()).toMatchObject([{ resource: "a", label, fence: lease.fence }]);
    expect((await locks.inspect("a")).foreign).toBeUndefined();
    expect(await locks.break("a")).toMatchObject({ broken: true, holders: [{ label }] });
  });

  test("a lock of ours is broken beside a foreign value, which stays", async () => {
    const locks = await bench.locks();
    await bench.holdByForeigner([0], "a", uuid);
    const lease = await locks.acquire("a");
    expect(await locks.break("a")).toMatchObject({ holders: [{ fence: lease.fence }] });
    await eventually(async () => expect(await bench.values("a")).toEqual([uuid, null, null]));
    await bench.freeByForeigner([0], "a");
  });

  test("gives no fence: the number at its end is not used for the next one", async () => {
    const locks = await single();
    const far = (Date.now() + 3_600_000) * 1_000;
    await holdEverywhere("a", `job|${far}`);
    expect(await locks.tryAcquire("a")).toBeUndefined();
    await using lease = await locks.acquire("b");
    expect(Number(lease.fence)).toBeLessThan(far - 60_000_000);
  });

  test.each([
    ["whole", "job|7", "job|8"],
    ["cut", `${"x".repeat(longest)}1`, `${"x".repeat(longest)}2`],
    ["not in ASCII", "über", "ëber"],
    ["longer than the one that was seen", "x".repeat(200), "x".repeat(201)],
  ])("break deletes what it saw or nothing: %s", async (_, before, after) => {
    const locks = await bench.locks(3, patient);
    await holdEverywhere("a", before);
    const seen = await locks.inspect("a");
    await holdEverywhere("a", after);
    const outcome = await locks.break(seen, { foreign: true });
    expect(outcome).toMatchObject({ broken: false, reason: "changed" });
    expect(await bench.values("a")).toEqual([after, after, after]);
    // The present value is deleted, in any form.
    expect(await locks.break("a", { foreign: true })).toMatchObject({ broken: true });
  });

  test("`foreign` must be true or false, and there is no other option", async () => {
    const locks = await single();
    const bad = { foreign: "yes" as never };
    await expect(locks.break("a", bad)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    const unknown = { force: true } as never;
    await expect(locks.break("a", unknown)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe.each(dialects)("foreign text %s", (_, options) => {
  test("cannot forge a line of a log", async () => {
    const locks = await bench.locks(3, options);
    await holdEverywhere("a", "me@x\nERROR  all is lost\u2028\u001B[2J");
    const error = await rejection(locks.acquire("a", { wait: 30 }));
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT", holder: { foreign: true } });
    expect(error).not.toHaveProperty("holder.label");
    // eslint-disable-next-line no-control-regex
    expect(String(error)).not.toMatch(/[\n\u2028\u001B]/);
  });

  test("that is long is not sent to waiting clients again and again", async () => {
    const received: number[] = [];
    const clients = await bench.connectAll();
    const measured = clients.map((client) => measure(watchConnection(client), received));
    const locks = createLocks(redlock(measured, { admission: "off", ...patient, ...options }));
    onTestFinished(() => locks.close());
    await holdEverywhere("a", "x".repeat(options.fencing === false ? 20_000 : longest));
    const contended = collect(locks, "contended");
    const error = await rejection(locks.acquire("a", { wait: 300, ttl: "20s" }));
    expect(error).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    expect(String(error).length).toBeLessThan(1_000);
    for (const { holder } of contended) {
      expect(holder?.owner.length ?? 0).toBeLessThan(3_000);
    }
    await locks.list();
    expect((await locks.inspect("a")).nodes[0]?.holder?.owner.length).toBeLessThan(300);
    const large = received.filter((length) => length > 10_000);
    // A plain SET returns the present value; a waiter uses a script afterwards.
    expect(large.length).toBeLessThanOrEqual(options.fencing === false ? 3 : 0);
  });
});

/** Records the length of each reply. */
function measure(watched: WatchedConnection, received: number[]): WatchedConnection {
  return {
    ...watched,
    async send(key, command) {
      const reply = await watched.send(key, command);
      received.push(JSON.stringify(reply)?.length ?? 0);
      return reply;
    },
  };
}

describe.each(dialects)("a key of another type, %s", (_, options) => {
  const redisson = ["HSET", "orders", `${uuid}:17`, "1"];
  const semaphore = ["ZADD", "orders", "1", uuid];
  const kinds = [
    ["hash", redisson, /Redisson/],
    ["zset", semaphore, /redis-semaphore/],
  ] as const;

  async function put(command: readonly string[], count: number): Promise<void> {
    for (const server of bench.servers.slice(0, count)) await server.command(...command);
    onTestFinished(async () => {
      for (const server of bench.servers) await server.command("DEL", "orders");
    });
  }

  test.each(kinds)("%s: acquire, inspect and break report its type", async (type, command, use) => {
    const locks = await single(options);
    const failed = collect(locks, "node-failed");
    const attempts = collect(locks, "attempt");
    await put(command, 1);
    const calls = [
      // At once, although the call might wait.
      locks.acquire("orders", { wait: "forever" }),
      locks.acquire(["orders", "x"], { wait: "forever" }),
      locks.tryAcquire("orders"),
      locks.inspect("orders"),
      locks.break("orders"),
      locks.break("orders", { foreign: true }),
    ];
    for (const error of await Promise.all(calls.map(rejection))) {
      expect(error).toBeInstanceOf(ForeignHolderError);
      expect(error).toMatchObject({ code: "FOREIGN_HOLDER", type });
      expect((error as ForeignHolderError).resources).toContain("orders");
      expect(String(error)).toMatch(use);
      expect(String(error)).toContain(`the key "orders" holds a ${type}`);
      expect(String(error)).not.toContain("WRONGTYPE");
    }
    expect(attempts).toHaveLength(3);
    expect(failed).toEqual([]);
    expect(await bench.server(0).command("TYPE", "orders")).toBe(type);
  });

  test("several in one batch get an error each", async () => {
    const locks = await single(options);
    await put(redisson, 1);
    const wrong = Array.from({ length: 3 }, () => rejection(locks.acquire("orders")));
    const right = ["a", "b", "c"].map((name) => locks.acquire(name));
    for (const error of await Promise.all(wrong)) expect(error).toMatchObject({ type: "hash" });
    await Promise.all((await Promise.all(right)).map((lease) => lease.release()));
  });

  test("costs one vote on a minority, and is the error on a quorum", async () => {
    const locks = await bench.locks(3, options);
    await put(redisson, 1);
    await (await locks.acquire("orders")).release();
    expect((await locks.inspect("orders")).state).toBe("free");
    await put(redisson, 2);
    await expect(locks.acquire("orders")).rejects.toMatchObject({ code: "FOREIGN_HOLDER" });
    await expect(locks.inspect("orders")).rejects.toMatchObject({ code: "FOREIGN_HOLDER" });
    expect(await bench.server(2).command("EXISTS", "orders")).toBe(0);
  });

  test("is refused as clearly if the user may not run TYPE", async () => {
    const server = bench.server(0);
    await server.command("ACL", "SETUSER", "plain", "on", "nopass", "~*", "&*", "+@all", "-type");
    onTestFinished(async () => {
      await server.command("ACL", "DELUSER", "plain");
    });
    const client = await connect(server.port, { username: "plain", password: "any" });
    const locks = openLocks([client], { ...options });
    await put(redisson, 1);
    const error = await rejection(locks.acquire("orders"));
    expect(error).toMatchObject({ code: "FOREIGN_HOLDER", type: "unknown" });
  });
});

test("an acquire in a Cluster reports a key of another type", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const { Cluster } = await import("ioredis");
  const client = new Cluster([{ port: cluster.nodes[0]?.port ?? 0, host: "127.0.0.1" }]);
  onTestFinished(() => client.disconnect());
  await eventually(() => client.status === "ready");
  const locks = createLocks(redis(client));
  onTestFinished(() => locks.close());
  await client.hset("orders", "a", "1");
  await expect(locks.acquire("orders")).rejects.toMatchObject({ type: "hash" });
  await expect(locks.inspect("orders")).rejects.toMatchObject({ type: "hash" });
});

describe.each(dialects)("a lock without an expiry, %s", (_, options) => {
  test("is reported as having none, and the next attempt is in the future", async () => {
    const locks = await single(options);
    const contended = collect(locks, "contended");
    await holdEverywhere("a", uuid);
    const error = await rejection(locks.acquire("a", { wait: 60 }));
    expect(error).toMatchObject({ holder: { neverExpires: true, foreign: true } });
    expect(String(error)).toContain("has no expiry: it will not end by itself");
    expect(String(error)).toContain(uuid);
    expect(contended.length).toBeGreaterThan(0);
    for (const { retryInMs } of contended) expect(retryInMs).toBeGreaterThanOrEqual(0);
    const seen = await locks.inspect("a");
    expect(seen).toMatchObject({ neverExpires: true, remainingMs: undefined });
  });

  test("is not reported if the lock has an expiry", async () => {
    const locks = await single(options);
    await holdEverywhere("a", uuid, "PX", "60000");
    const error = await rejection(locks.acquire("a", { wait: 60 }));
    expect(String(error)).not.toContain("expiry");
    expect((await locks.inspect("a")).neverExpires).toBeUndefined();
  });
});
