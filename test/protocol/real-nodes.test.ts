import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Locks, LockOptions } from "../../src/index.ts";
import { StoreError } from "../../src/index.ts";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import { collect, nodeRecordKey, rejection, shareRedis } from "../support/redis-harness.ts";
import { FenceJournal, skewedRuntime } from "./fence-journal.ts";

/**
 * Fences on real servers, with real clients: all are different, and a later request gets a greater
 * one. These tests run without admission; test/admission has those with restarts.
 */

const redis = shareRedis(5);
const eager: LockOptions = { wait: "40s", retry: { minDelay: 1, maxDelay: 20 } };
const hourMs = 3_600_000;

function pick<Item>(items: readonly Item[], at: number): Item {
  const item = items[at % items.length];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

/** Opens clients of the same nodes, with clocks up to an hour apart. */
async function managers(nodeCount: number): Promise<Locks[]> {
  const offsets = [0, hourMs, -hourMs, 12];
  return await Promise.all(
    offsets.map((offset) => redis.locks(nodeCount, {}, { runtime: skewedRuntime(offset) })),
  );
}

/** Runs many tasks in several clients, each acquiring and releasing one resource a few times. */
async function contend(journal: FenceJournal, clients: readonly Locks[], resource: string) {
  const tasks = Array.from({ length: clients.length * 2 }, async (_, index) => {
    for (let turn = 0; turn < 4; turn += 1) {
      const lease = await journal.acquire(pick(clients, index), resource, eager);
      await lease.release();
    }
  });
  await Promise.all(tasks);
}

describe.each([3, 5])("%i nodes", (nodeCount) => {
  test("keep fences in order under contention of clients with clocks an hour apart", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    await Promise.all(["a", "b"].map((resource) => contend(journal, clients, resource)));
    expect(journal.entries).toHaveLength(64);
    expect(journal.disorder()).toEqual([]);
  });

  test("keep fences in order while keys vanish under their holders", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    const over = new AbortController();
    const vanishing = (async () => {
      for (let turn = 0; !over.signal.aborted; turn += 1) {
        await pick(redis.servers, turn).command("DEL", "a");
      }
    })();
    await contend(journal, clients, "a");
    over.abort();
    await vanishing;
    expect(journal.disorder()).toEqual([]);
  });

  test("keep fences in order across leases that expire", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    for (let turn = 0; turn < 8; turn += 1) {
      await journal.acquire(pick(clients, turn), "a", { ...eager, ttl: 100 });
    }
    // A queue entry that is not removed expires within 15 s.
    await expect.poll(() => redis.keysLeft(), { timeout: 25_000 }).toEqual([]);
    expect(journal.disorder()).toEqual([]);
  });

  test("keep fences in order with as many nodes down as allowed, different ones each time", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    const tolerated = Math.floor((nodeCount - 1) / 2);
    for (let turn = 0; turn < nodeCount; turn += 1) {
      const down = Array.from({ length: tolerated }, (_, n) => (turn + n) % nodeCount);
      redis.freeze(...down);
      const lease = await journal.acquire(pick(clients, turn), "a", { ...eager, ttl: "2s" });
      redis.thaw(...down);
      await lease.release();
      // A release that a frozen node has not run yet must not arrive after the next acquire.
      await expect.poll(() => redis.keysLeft()).toEqual([]);
    }
    expect(journal.disorder()).toEqual([]);
  });

  test("keep fences in order if their counters differ, and a second round has to raise them", async () => {
    const locks = await redis.locks(nodeCount);
    const raised = collect(locks, "fence-raised");
    const journal = new FenceJournal();
    const shard = String(shardOf("a"));
    const first = await journal.acquire(locks, "a");
    await first.release();
    for (let turn = 1; turn <= 10; turn += 1) {
      const greatest = Number(journal.entries.at(-1)?.fence);
      for (const [n, server] of redis.servers.entries()) {
        // As if other resources of the shard had been granted there, ahead of every clock.
        const counter = greatest + hourMs * 1_000 + ((n * 7 + turn) % 5);
        await server.command("HSET", nodeRecordKey, shard, String(counter));
      }
      const lease = await journal.acquire(locks, "a");
      await lease.release();
    }
    expect(raised.map(({ fence }) => fence)).toEqual(
      journal.entries.slice(1).map(({ fence }) => fence),
    );
    expect(journal.disorder()).toEqual([]);
  });

  test("give a lock on several resources a fence above every earlier one of each resource", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    const names = ["a", "b", "c", "d"];
    const set = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(set, fc.nat({ max: 3 }), async (resources, client) => {
        const lease = await journal.acquire(pick(clients, client), resources, eager);
        await lease.release();
      }),
      { numRuns: 40 },
    );
    const together = names.map((name) => journal.acquire(pick(clients, 1), [name, "z"], eager));
    for (const lease of together) void lease.then(async (held) => await held.release());
    await Promise.all(together);
    expect(journal.disorder()).toEqual([]);
  });
});

test("a fence is a bigint, and the same number as in the key", async () => {
  const locks = await redis.locks(3);
  await using lease = await locks.acquire("a");
  expect(typeof lease.fence).toBe("bigint");
  // A quorum has the key; the lease may have been granted before the third node had it.
  const kept = (await redis.values("a")).filter((value) => value !== null);
  expect(kept.length).toBeGreaterThanOrEqual(2);
  for (const value of kept) expect(value).toMatch(new RegExp(String.raw`\|${lease.fence}$`));
});

test("a fence is exact up to 2^53, and there is none above it", async () => {
  const locks = await redis.locks(3);
  const shard = String(shardOf("a"));
  const last = 2n ** 53n - 1n;
  for (const server of redis.servers) {
    await server.command("HSET", nodeRecordKey, "rid", "-", shard, String(last - 1n));
  }
  const lease = await locks.acquire("a");
  expect(lease.fence).toBe(last);
  await lease.release();
  const error = await rejection(locks.acquire("a", eager));
  expect(error).toMatchObject({ code: "QUORUM", cause: expect.any(StoreError) });
  expect(String(error)).toContain("beyond 2^53");
  expect(await redis.keysLeft()).toEqual([]);
});

test("a foreign value that looks like a fence does not raise a client's proposals", async () => {
  const locks = await redis.locks(3);
  await redis.holdByForeigner([0, 1, 2], "a", "job|1790000000123456789");
  expect(await locks.tryAcquire("a")).toBeUndefined();
  // The same with a safe number that is centuries ahead.
  await redis.holdByForeigner([0, 1, 2], "b", "job|9007199254740000");
  expect(await locks.tryAcquire("b")).toBeUndefined();
  await using lease = await locks.acquire("c");
  expect(lease.fence).toBeLessThan(BigInt(Date.now() + hourMs) * 1_000n);
  await redis.freeByForeigner([0, 1, 2], "a");
  await redis.freeByForeigner([0, 1, 2], "b");
});
