import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { builtInDefaults, resolveOptions } from "../../src/core/options.ts";
import { resourcesOf } from "../../src/core/resources.ts";
import { createLocks, InvalidOptionError, type LockOptions } from "../../src/index.ts";
import { embedded } from "../../src/stores/embedded/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { redis, redlockGroups } from "../../src/stores/redis/index.ts";
import { scene } from "./fake-store.ts";

const maxTtlMs = 30_000;

function resolve(given?: LockOptions, defaults = builtInDefaults) {
  return resolveOptions(given, defaults, { maxTtlMs });
}

describe("options", () => {
  test("that are left out have the built-in defaults", () => {
    const expected = {
      ttlMs: 10_000,
      waitMs: 10_000,
      isDefaultWait: true,
      renew: undefined,
      maxHoldMs: 3_600_000,
      retryMinMs: 10,
      retryMaxMs: 200,
      label: undefined,
      signal: undefined,
    };
    expect(resolve()).toEqual(expected);
    expect(resolve({})).toEqual(expected);
    expect(resolve({ ttl: undefined, wait: undefined } as object)).toEqual(expected);
  });

  test("that are given are kept, with units resolved", () => {
    const { signal } = new AbortController();
    const given: LockOptions = {
      ttl: "5s",
      wait: "1m",
      renew: true,
      maxHold: "2h",
      retry: { minDelay: 5, maxDelay: "1s" },
      label: "me",
      signal,
    };
    expect(resolve(given)).toEqual({
      ttlMs: 5_000,
      waitMs: 60_000,
      isDefaultWait: false,
      renew: true,
      maxHoldMs: 7_200_000,
      retryMinMs: 5,
      retryMaxMs: 1_000,
      label: "me",
      signal,
    });
  });

  test("of a call override those of the manager, which override the built-in ones", () => {
    const manager = resolve({ ttl: 2_000, wait: 0, label: "manager", renew: true });
    expect(resolve({ ttl: 3_000, renew: false }, manager)).toMatchObject({
      ttlMs: 3_000,
      waitMs: 0,
      label: "manager",
      renew: false,
      maxHoldMs: 3_600_000,
    });
  });

  test("reduce the default TTL to the store's limit, but refuse a given one above it", () => {
    const short = { maxTtlMs: 2_000 };
    expect(resolveOptions(undefined, builtInDefaults, short).ttlMs).toBe(2_000);
    expect(resolveOptions({ wait: 0 }, builtInDefaults, short).ttlMs).toBe(2_000);
    expect(() => resolveOptions({ ttl: 2_001 }, builtInDefaults, short)).toThrow(
      "ttl 2001 ms is longer than this store's maxTtl, 2 s",
    );
  });

  test("raise the default maxDelay if minDelay is above it", () => {
    expect(resolve({ retry: { minDelay: 500 } })).toMatchObject({
      retryMinMs: 500,
      retryMaxMs: 500,
    });
  });

  test("refuse a renewal that leaves no time for a second one, also as a default", () => {
    expect(resolve({ ttl: 1_000, renew: 875 }).renew).toBe(875);
    expect(() => resolve({ ttl: 1_000, renew: 876 })).toThrow("`renew`");
    const manager = resolve({ ttl: 10_000, renew: "5s" });
    expect(resolve({ ttl: 6_000 }, manager).renew).toBe(5_000);
    expect(() => resolve({ ttl: 3_000 }, manager)).toThrow("`renew`");
  });

  test("refuse a renewal that would come after the validity, for each store", () => {
    const stores = [
      [memory(), 8_750],
      [embedded("/nowhere"), 8_749],
      [redis(new Redis({ lazyConnect: true })), 8_648],
      [redlockGroups([[new Redis({ lazyConnect: true })]]), 8_648],
    ] as const;
    for (const [store, mostMs] of stores) {
      createLocks(store, { ttl: "10s", renew: mostMs });
      const late = (): unknown => createLocks(store, { ttl: "10s", renew: mostMs + 1 });
      expect(late, store.name).toThrow(InvalidOptionError);
      expect(late, store.name).toThrow(
        `Expected \`renew\` to be true, false, or a duration of whole milliseconds from 1 ms to ` +
          `${mostMs} ms (a lease with ttl 10000 ms is valid for`,
      );
    }
  });

  test("refuse a renewal after the end of a call's TTL before anything is sent", async () => {
    const { locks, calls } = scene({}, { ttl: "20s", renew: "9s" });
    await expect(locks.acquire("a", { ttl: "10s" })).rejects.toThrow("`renew`");
    await expect(locks.tryAcquire("a", { ttl: "10s" })).rejects.toThrow("`renew`");
    await expect(locks.using("a", { ttl: "10s" }, () => "done")).rejects.toThrow("`renew`");
    expect(calls).toEqual([]);
  });

  test('turn wait "forever" into an infinite wait', () => {
    expect(resolve({ wait: "forever" }).waitMs).toBe(Infinity);
    expect(resolve({ wait: 0 }).waitMs).toBe(0);
  });
});

describe("createLocks", () => {
  test("refuses a value that is not a store", () => {
    for (const store of [undefined, null, {}, "redis://localhost", () => memory()]) {
      expect(() => createLocks(store as never)).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION", option: "store" }),
      );
    }
  });

  test("refuses a signal as a default, and an unknown default", () => {
    const { signal } = new AbortController();
    for (const [option, defaults] of Object.entries({ signal: { signal }, tttl: { tttl: 5 } })) {
      expect(() => createLocks(memory(), defaults as never)).toThrow(
        expect.objectContaining({ code: "INVALID_OPTION", option }),
      );
    }
  });

  test("refuses a listener that is not a function", async () => {
    const locks = createLocks(memory());
    expect(() => locks.on("lost", "listener" as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", option: "listener" }),
    );
    await locks.close();
  });
});

describe("resources", () => {
  test("are sorted by code unit, so that every client uses the same order", () => {
    expect(resourcesOf(["b", "a", "Z", "é", "a"])).toEqual(["Z", "a", "b", "é"]);
    expect(resourcesOf("one")).toEqual(["one"]);
  });

  test("may be 256 at once, of 4096 characters each, and no more", () => {
    const names = Array.from({ length: 257 }, (_, index) => `${index}`.padEnd(4_096, "x"));
    expect(resourcesOf(names.slice(1))).toHaveLength(256);
    expect(() => resourcesOf(names)).toThrow("257 names");
    expect(() => resourcesOf("x".repeat(4_097))).toThrow("4097 characters");
  });

  test("given twice count once towards the limit", () => {
    expect(resourcesOf(Array.from({ length: 1_000 }, () => "same"))).toEqual(["same"]);
  });
});
