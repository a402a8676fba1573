import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Locks, LockOptions } from "../../src/index.ts";
import { StoreError } from "../../src/index.ts";
import { shardOf } from "../../src/stores/redis/quorum/shards.ts";
import { collect, nodeRecordKey, rejection, shareRedis } from "../support/redis-harness.ts";
import { FenceJournal, skewedRuntime } from "./fence-journal.ts";

/**
 * Fences on real servers, with real clients: no two alike, and whoever asks later gets more. These
 * run without admission; test/admission has what restarts do.
 */

const redis = shareRedis(5);
const eager: LockOptions = { wait: "40s", retry: { minDelay: 1, maxDelay: 20 } };
const hourMs = 3_600_000;

function pick<Item>(items: readonly Item[], at: number): Item {
  const item = items[at % items.length];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

/** Clients of the same nodes, with clocks an hour apart in both directions. */
async function managers(nodeCount: number): Promise<Locks[]> {
  const offsets = [0, hourMs, -hourMs, 12];
  return await Promise.all(
    offsets.map((offset) => redis.locks(nodeCount, {}, { runtime: skewedRuntime(offset) })),
  );
}

/** Many tasks in several clients, each acquiring and releasing one resource a few times. */
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
  test("under contention of clients with clocks an hour apart", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    await Promise.all(["a", "b"].map((resource) => contend(journal, clients, resource)));
    expect(journal.entries).toHaveLength(64);
    expect(journal.disorder()).toEqual([]);
  });

  test("while keys vanish under their holders", async () => {
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

  test("across leases that end by their own TTL", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    for (let turn = 0; turn < 8; turn += 1) {
      await journal.acquire(pick(clients, turn), "a", { ...eager, ttl: 100 });
    }
    // A place in a queue that is not given up lapses within 15 s.
    await expect.poll(() => redis.keysLeft(), { timeout: 25_000 }).toEqual([]);
    expect(journal.disorder()).toEqual([]);
  });

  test("with as many nodes down as may be, other ones each time", async () => {
    const journal = new FenceJournal();
    const clients = await managers(nodeCount);
    const tolerated = Math.floor((nodeCount - 1) / 2);
    for (let turn = 0; turn < nodeCount; turn += 1) {
      const down = Array.from({ length: tolerated }, (_, n) => (turn + n) % nodeCount);
      redis.freeze(...down);
      const lease = await journal.acquire(pick(clients, turn), "a", { ...eager, ttl: "2s" });
      redis.thaw(...down);
      await lease.release();
      // A release that a frozen node has not answered yet must not meet the next acquire.
      await expect.poll(() => redis.keysLeft()).toEqual([]);
    }
    expect(journal.disorder()).toEqual([]);
  });

  test("when the nodes' counters differ, so that a second round must level them", async () => {
    const locks = await redis.locks(nodeCount);
    const raised = collect(locks, "fence-raised");
    const journal = new FenceJournal();
    const shard = String(shardOf("a"));
    const first = await journal.acquire(locks, "a");
    await first.release();
    for (let turn = 1; turn <= 10; turn += 1) {
      const greatest = Number(journal.entries.at(-1)?.fence);
      for (const [n, server] of redis.servers.entries()) {
        // Other resources of the shard were granted there, in the future of every clock.
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

  test("a fence of several resources is above every earlier fence of each of them", async () => {
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

test("a fence is a bigint, and the very number that stands in the key", async () => {
  const locks = await redis.locks(3);
  await using lease = await locks.acquire("a");
  expect(typeof lease.fence).toBe("bigint");
  // A quorum has it; the third node may not have been waited for.
  const kept = (await redis.values("a")).filter((value) => value !== null);
  expect(kept.length).toBeGreaterThanOrEqual(2);
  for (const value of kept) expect(value).toMatch(new RegExp(String.raw`\|${lease.fence}$`));
});

test("a fence is exact up to 2^53, and beyond it there is none", async () => {
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

test("a foreign value that looks like a fence does not carry a client's proposals away", async () => {
  const locks = await redis.locks(3);
  await redis.holdByForeigner([0, 1, 2], "a", "job|1790000000123456789");
  expect(await locks.tryAcquire("a")).toBeUndefined();
  // Nor one that is still a safe number, and centuries ahead.
  await redis.holdByForeigner([0, 1, 2], "b", "job|9007199254740000");
  expect(await locks.tryAcquire("b")).toBeUndefined();
  await using lease = await locks.acquire("c");
  expect(lease.fence).toBeLessThan(BigInt(Date.now() + hourMs) * 1_000n);
  await redis.freeByForeigner([0, 1, 2], "a");
  await redis.freeByForeigner([0, 1, 2], "b");
});
