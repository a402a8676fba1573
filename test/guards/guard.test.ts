import type { Redis } from "ioredis";
import { beforeAll, describe, expect, it } from "vitest";
import { createLocks, UnsupportedError, type LockEvents } from "../../src/index.ts";
import { fenceMax, fenceOf, reportRejection } from "../../src/fencing/guard.ts";
import { fenceHeaders } from "../../src/fencing/http.ts";
import { idempotencyKey } from "../../src/fencing/idempotency.ts";
import { fencedGet, fencedSet } from "../../src/fencing/redis.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf } from "./lease-like.ts";

describe("guards with real leases", () => {
  const databases = shareDatabases("redis");
  let client: Redis;

  beforeAll(() => {
    client = databases.redisClient;
  });

  it("refuse the earlier of two leases, and its manager emits an event", async () => {
    const locks = createLocks(memory());
    const rejections: LockEvents["fence-rejected"][] = [];
    locks.on("fence-rejected", (event) => rejections.push(event));
    const earlier = await locks.acquire("invoice:42", { label: "first" });
    await fencedSet(client, earlier, "value", "earlier");
    await earlier.release();
    const later = await locks.acquire("invoice:42");
    await fencedSet(client, later, "value", "later");
    const error = await rejectionOf(fencedSet(client, earlier, "value", "too late"));
    expect(error).toMatchObject({ fence: earlier.fence, seen: later.fence });
    expect(rejections).toEqual([
      {
        resources: ["invoice:42"],
        label: "first",
        resource: "invoice:42",
        fence: earlier.fence,
        seen: later.fence,
        guard: "redis",
      },
    ]);
    expect(await fencedGet(client, "value")).toEqual({ value: "later", fence: later.fence });
    await locks.close();
  });

  it("write nothing for a lease of a store without fences", async () => {
    const locks = createLocks(redis(client, { fencing: false }));
    const lease = await locks.acquire("unfenced");
    const error = await rejectionOf(fencedSet(client, lease, "untouched", "x"));
    expect(error).toBeInstanceOf(UnsupportedError);
    expect(() => fenceHeaders(lease)).toThrow(UnsupportedError);
    expect(() => idempotencyKey(lease)).toThrow(UnsupportedError);
    expect(await databases.redis.command("EXISTS", "untouched")).toBe(0);
    await locks.close();
  });
});

describe("what a guard reads from a lease", () => {
  it("must be a bigint that fits BIGINT, or the error names it", () => {
    expect(fenceOf(1n)).toBe(1n);
    expect(fenceOf(leaseLike(fenceMax))).toBe(fenceMax);
    for (const fence of [0n, -5n, fenceMax + 1n, 7, "7", null, undefined, {}, { fence: 7 }]) {
      expect(() => fenceOf(fence as never)).toThrow("`fence`");
    }
  });

  it("is reported to the lease, and a failing listener does not hide the rejection", () => {
    const event = { resource: "a", fence: 1n, seen: 2n, guard: "http" } as const;
    const broken = {
      ...leaseLike(1n),
      [Symbol.for("holdfast.lease.fenceRejected")]: () => {
        throw new Error("listener");
      },
    };
    reportRejection(broken, event);
    reportRejection(1n, event);
    reportRejection({ fence: 1n, resources: ["a"] }, event);
  });
});
