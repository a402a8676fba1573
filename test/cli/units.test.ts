import { describe, expect, test } from "vitest";
import { histogram, quantile } from "../../src/cli/bench/measure.ts";
import { killAfterMs, marginMs, stopLeftMs } from "../../src/cli/exec/stop-plan.ts";
import { parseStoreAddress, storeIdentity } from "../../src/cli/store-address.ts";
import { Sightings } from "../../src/cli/watch/sightings.ts";
import type { Inspection } from "../../src/core/store.ts";

describe("when to stop a command", () => {
  const terms = { ttlMs: 10_000, graceMs: 2_500 };

  test("SIGTERM is sent early enough for the grace, and SIGKILL before the end of the lease", () => {
    const leftMs = stopLeftMs(terms);
    expect(leftMs).toBeGreaterThan(terms.graceMs);
    expect(killAfterMs(terms, leftMs)).toBe(terms.graceMs);
    expect(killAfterMs(terms, leftMs)).toBeLessThan(leftMs);
  });

  test("a grace that is longer than the time left is cut, down to 0", () => {
    expect(killAfterMs(terms, 1_000)).toBeLessThan(1_000);
    expect(killAfterMs(terms, 1)).toBe(0);
  });

  test("a command whose lease is already over gets the whole grace", () => {
    expect(killAfterMs(terms, 0)).toBe(terms.graceMs);
  });

  test("a lease that is renewed in time gets no signal, even with the longest grace", () => {
    for (const ttlMs of [100, 1_000, 10_000, 86_400_000]) {
      const longest = { ttlMs, graceMs: ttlMs };
      // A renewal is due with two thirds left, and one server may take a fifth to answer.
      expect(stopLeftMs(longest)).toBeLessThan((2 / 3 - 1 / 10) * ttlMs);
      expect(marginMs(longest)).toBeGreaterThan(0);
    }
  });
});

describe("store addresses", () => {
  test("name servers, users, databases and options", () => {
    expect(
      parseStoreAddress("rediss://me:a%40b@[::1]:7000/2?prefix=p:&ca=ca.pem", "/base"),
    ).toEqual({
      kind: "redis",
      settings: { prefix: "p:" },
      servers: [
        {
          host: "::1",
          port: 7000,
          database: 2,
          username: "me",
          password: "a@b",
          tls: { ca: "/base/ca.pem", cert: undefined, key: undefined, servername: undefined },
        },
      ],
    });
    const quorum = parseStoreAddress("redlock:redis://a,redis://b:1,rediss://c?maxTtl=5s", "/");
    expect(quorum).toMatchObject({ kind: "redlock", settings: { maxTtl: "5s" } });
  });

  test("of the same locks have the same identity, in any order and with any user", () => {
    const identity = (text: string): string => storeIdentity(parseStoreAddress(text, "/base"));
    expect(identity("redlock:redis://a,redis://b")).toBe(identity("redlock:redis://b,redis://x@a"));
    expect(identity("redis://a")).toBe(identity("redis://:secret@a:6379/0"));
    expect(identity("redis://a")).not.toBe(identity("redis://a/1"));
    expect(identity("redis://a")).not.toBe(identity("redis://a?prefix=x"));
    expect(identity("embedded:x")).toBe(identity("embedded:/base/x"));
  });

  test("that are malformed are refused without repeating any part of them", () => {
    const part = "2718";
    const passwords = [
      `/${part}`,
      `${part}/3`,
      `a,${part}`,
      `%${part}%`,
      `${part}#3`,
      `${part}?3=4`,
    ];
    const malformed = [
      ...passwords.flatMap((password) => [
        `redis://me:${password}@host`,
        `redis://:${password}@host/0`,
        `redlock:redis://me:${password}@host,redis://other`,
      ]),
      `redis:/me:${part}@host`,
      `me:${part}@host`,
      `redsi://me:${part}@host`,
      `redis:me:${part}@host`,
      `${part}@host`,
    ];
    for (const text of malformed) {
      try {
        // A comma is allowed in the password of a single server.
        expect(parseStoreAddress(text, "/")).toMatchObject({
          servers: [{ password: `a,${part}` }],
        });
      } catch (error) {
        expect(error).toMatchObject({ exit: "misuse" });
        expect((error as Error).message).not.toContain(part);
        expect((error as Error).cause).toBeUndefined();
      }
    }
  });
});

describe("sightings", () => {
  const seen = (resource: string, owner: string, remainingMs: number): Inspection => ({
    resource,
    state: "held",
    label: undefined,
    fence: undefined,
    remainingMs,
    nodes: [{ node: "n", vote: "held", holder: { owner } }],
  });

  test("count the time from the first look, and distinguish a new holder from a renewal", () => {
    const sightings = new Sightings();
    expect(sightings.update([seen("r", "one", 800)], 0)).toMatchObject([{ kind: "held" }]);
    expect(sightings.update([seen("r", "one", 1_000)], 100)).toEqual([]);
    expect(sightings.all).toMatchObject([{ sinceMs: 0, atLeast: true, fullMs: 1_000 }]);
    const changes = sightings.update([seen("r", "two", 900)], 200);
    expect(changes.map(({ kind }) => kind)).toEqual(["freed", "held"]);
    expect(sightings.all).toMatchObject([{ sinceMs: 200, atLeast: false }]);
    expect(sightings.update([], 300)).toMatchObject([{ kind: "freed" }]);
    expect(sightings.all).toEqual([]);
  });
});

describe("measurements", () => {
  test("a histogram counts every value once, in few adjacent buckets", () => {
    const sorted = Array.from({ length: 1_000 }, (_, index) => 0.1 * 1.02 ** index);
    const buckets = histogram(sorted);
    expect(buckets.length).toBeLessThanOrEqual(14);
    expect(buckets.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
    expect(buckets.at(-1)?.toMs).toBeGreaterThan(sorted.at(-1) ?? 0);
    expect(buckets[0]?.fromMs).toBeLessThanOrEqual(0.1);
    const gaps = buckets.slice(1).filter(({ fromMs }, index) => fromMs !== buckets[index]?.toMs);
    expect(gaps).toEqual([]);
    expect(histogram([0])).toHaveLength(1);
    expect(histogram([])).toEqual([]);
  });

  test("quantiles are those of the sorted list", () => {
    const sorted = Array.from({ length: 100 }, (_, index) => index);
    expect([0, 0.5, 0.99, 1].map((share) => quantile(sorted, share))).toEqual([0, 50, 99, 99]);
  });
});
