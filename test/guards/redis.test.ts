import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, StoreError, UnsupportedError } from "../../src/core/errors.ts";
import { fencedDelete, fencedGet, fencedSet, redisFences } from "../../src/fencing/redis.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf, shuffledFences, unfencedLease } from "./lease-like.ts";

const databases = shareDatabases("redis");

beforeEach(async () => {
  await databases.redis.command("FLUSHALL");
});

interface Connected {
  readonly client: unknown;
  readonly close: () => Promise<unknown>;
}

const kinds: readonly (readonly [string, () => Promise<Connected>])[] = [
  [
    "ioredis",
    async () => {
      const client = new Redis(databases.redis.url, { lazyConnect: true });
      await client.connect();
      return { client, close: () => client.quit() };
    },
  ],
  [
    "node-redis",
    async () => {
      const client = createClient({ url: databases.redis.url });
      await client.connect();
      return { client, close: () => client.close() };
    },
  ],
];

const beyondDouble = 9_007_199_254_740_993n;
const greatest = 2n ** 63n - 1n;
const unlimited = { maxFenceAhead: "unlimited" } as const;

describe.each(kinds)("a fenced value through %s", (_, connect) => {
  let client: unknown;
  let close: () => Promise<unknown>;

  beforeAll(async () => {
    ({ client, close } = await connect());
  });

  afterAll(async () => {
    await close();
  });

  it("accepts equal and greater fences and reads value and fence together", async () => {
    expect(await fencedGet(client, "balance")).toBeUndefined();
    for (const [fence, value] of [
      [7n, "a"],
      [7n, "b 🔒"],
      [beyondDouble, ""],
    ] as const) {
      await fencedSet(client, leaseLike(fence), "balance", value, unlimited);
      expect(await fencedGet(client, "balance")).toEqual({ value, fence });
    }
  });

  it("refuses a smaller fence with the one it saw, exact up to 2^63-1", async () => {
    for (const [last, late] of [
      [9n, 8n],
      [10n, 9n],
      [beyondDouble, beyondDouble - 1n],
      [greatest, greatest - 1n],
    ] as const) {
      await fencedSet(client, last, "balance", "kept", unlimited);
      const stale = leaseLike(late);
      const error = await rejectionOf(fencedSet(client, stale, "balance", "late", unlimited));
      expect(error).toBeInstanceOf(FenceRejectedError);
      expect(error).toMatchObject({ fence: late, seen: last, resources: ["invoice:42"] });
      expect(stale.rejections).toEqual([
        { resource: "invoice:42", fence: late, seen: last, guard: "redis" },
      ]);
      expect(await fencedGet(client, "balance")).toEqual({ value: "kept", fence: last });
    }
  });

  it("keeps the fence of a deleted value", async () => {
    await fencedSet(client, 7n, "balance", "a");
    expect(await rejectionOf(fencedDelete(client, 6n, "balance"))).toMatchObject({ seen: 7n });
    await fencedDelete(client, 8n, "balance");
    expect(await fencedGet(client, "balance")).toEqual({ value: undefined, fence: 8n });
    const error = await rejectionOf(fencedSet(client, 7n, "balance", "late"));
    expect(error).toMatchObject({ seen: 8n });
  });

  it("keeps the fence of a value that has expired", async () => {
    await fencedSet(client, 7n, "balance", "short", { ttl: 1 });
    for (;;) {
      const found = await fencedGet(client, "balance");
      if (found?.value === undefined) break;
    }
    expect(await fencedGet(client, "balance")).toEqual({ value: undefined, fence: 7n });
    expect(await rejectionOf(fencedSet(client, 6n, "balance", "late"))).toMatchObject({
      seen: 7n,
    });
    await fencedSet(client, 7n, "balance", "long", { ttl: "1h" });
    expect(await fencedGet(client, "balance")).toMatchObject({ value: "long" });
    await fencedSet(client, 7n, "balance", "for ever");
    expect(await databases.redis.command("HGET", "balance", "until")).toBeNull();
  });

  it("forgets a fence only on request", async () => {
    await fencedSet(client, 7n, "balance", "a", { forgetAfter: "1h", ttl: "1m" });
    expect(Number(await databases.redis.command("PTTL", "balance"))).toBeGreaterThan(60_000);
    await fencedSet(client, 7n, "balance", "a");
    expect(await databases.redis.command("PTTL", "balance")).toBe(-1);
    await fencedDelete(client, 7n, "balance", { forgetAfter: "1h" });
    expect(Number(await databases.redis.command("PTTL", "balance"))).toBeGreaterThan(60_000);
  });

  it("keeps the write of the greatest fence of many concurrent ones", async () => {
    const results = await Promise.allSettled(
      shuffledFences(200, 3).map((fence) => fencedSet(client, fence, "balance", `${fence}`)),
    );
    expect(await fencedGet(client, "balance")).toEqual({ value: "200", fence: 200n });
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toBeInstanceOf(FenceRejectedError);
    }
  });

  it("works after the server has lost its scripts", async () => {
    await fencedSet(client, 7n, "balance", "a");
    await databases.redis.command("SCRIPT", "FLUSH");
    await fencedSet(client, 8n, "balance", "b");
    await databases.redis.command("SCRIPT", "FLUSH");
    expect(await fencedGet(client, "balance")).toEqual({ value: "b", fence: 8n });
  });

  it("does not change a key that is not a fenced value", async () => {
    await databases.redis.command("SET", "plain", "x");
    await databases.redis.command("HSET", "hash", "field", "x");
    await databases.redis.command("HSET", "broken", "fence", "1e9");
    for (const key of ["plain", "hash", "broken"]) {
      expect(await rejectionOf(fencedSet(client, 7n, key, "y"))).toBeInstanceOf(StoreError);
      expect(await rejectionOf(fencedDelete(client, 7n, key))).toBeInstanceOf(StoreError);
      expect(await rejectionOf(fencedGet(client, key))).toBeInstanceOf(StoreError);
    }
    expect(await databases.redis.command("GET", "plain")).toBe("x");
    expect(await databases.redis.command("HGETALL", "hash")).toEqual(["field", "x"]);
  });

  it("writes nothing for a lease without a fence, bad fences and bad options", async () => {
    const attempt = (fenced: unknown, options?: unknown): Promise<unknown> =>
      rejectionOf(fencedSet(client, fenced as never, "balance", "x", options as never));
    expect(await attempt(unfencedLease())).toBeInstanceOf(UnsupportedError);
    for (const fence of [0n, -1n, 2n ** 63n, 5, undefined]) {
      expect(await attempt(fence)).toMatchObject({ code: "INVALID_OPTION", option: "fence" });
    }
    expect(await attempt(1n, { tttl: 5 })).toMatchObject({ option: "tttl" });
    expect(await attempt(1n, { ttl: 0 })).toMatchObject({ option: "ttl" });
    expect(await attempt(1n, { ttl: "2s", forgetAfter: "1s" })).toMatchObject({
      option: "forgetAfter",
    });
    expect(await rejectionOf(fencedSet(client, 1n, "", "x"))).toMatchObject({ option: "key" });
    expect(await rejectionOf(fencedSet(client, 1n, "k", 5 as never))).toMatchObject({
      option: "value",
    });
    expect(await rejectionOf(fencedSet({}, 1n, "k", "x"))).toMatchObject({ option: "client" });
    expect(await rejectionOf(fencedGet(undefined, "k"))).toMatchObject({ option: "client" });
    expect(await databases.redis.command("DBSIZE")).toBe(0);
  });

  it("keeps the fences of an HTTP guard", async () => {
    const store = redisFences(client, { prefix: "g:", forgetAfter: "1h" });
    expect(await store.admit("a", 7n)).toEqual({ accepted: true });
    expect(await store.admit("a", 7n)).toEqual({ accepted: true });
    expect(await store.admit("a", greatest)).toEqual({ accepted: true });
    expect(await store.admit("a", greatest - 1n)).toEqual({ accepted: false, seen: greatest });
    expect(await store.admit("b", 1n)).toEqual({ accepted: true });
    expect(await databases.redis.command("GET", "g:a")).toBe(String(greatest));
    expect(Number(await databases.redis.command("PTTL", "g:b"))).toBeGreaterThan(60_000);
    await redisFences(client).admit("c", 1n);
    expect(await databases.redis.command("PTTL", "holdfast:guard:c")).toBe(-1);
    await databases.redis.command("SET", "g:odd", "x");
    expect(await rejectionOf(store.admit("odd", 1n))).toBeInstanceOf(Error);
  });
});
