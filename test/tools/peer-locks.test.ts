import { createRequire } from "node:module";
import { expect, test } from "vitest";
import * as peers from "../../tools/peers/peer-locks.mjs";
import { opened } from "../../tools/peers/scoped-lock.mjs";
import { eventually } from "../support/redis-eventually.ts";
import { shareRedis } from "../support/redis-harness.ts";

const bench = shareRedis(3);
const load = createRequire(import.meta.url);
const terms = { ttlMs: 600, waitMs: 0, pollMs: undefined, renewEveryMs: 100 };

type Open = (clients: readonly object[]) => peers.PeerLocks;

const libraries: readonly (readonly [string, string, Open])[] = [
  ["redlock 4", "a", (clients) => peers.redlock4(load("redlock4") as never, clients, terms)],
  [
    "redlock 5",
    "a",
    (clients) => {
      const { default: Redlock } = load("redlock") as { default: never };
      return peers.redlock5(Redlock, clients, terms);
    },
  ],
  [
    "redis-semaphore",
    "mutex:a",
    (clients) => peers.redisSemaphore(load("redis-semaphore") as never, clients, terms),
  ],
];

test.each(libraries)("%s holds a lock until it is released", async (_, key, open) => {
  for (const count of [1, 3]) {
    const locks = open(await bench.connectAll(count));
    const held = await locks.acquire("a");
    await expect(locks.acquire("a")).rejects.toBeDefined();
    expect(await bench.server(0).command("EXISTS", key)).toBe(1);
    await locks.release(held);
    await bench.untilFree();
  }
});

test.each(libraries)("%s renews a lock that is kept until it is dropped", async (_, key, open) => {
  const locks = open(await bench.connectAll(1));
  const kept = await locks.keep("a");
  let previousMs = terms.ttlMs;
  // The time to live grows only by a renewal.
  await eventually(async () => {
    const leftMs = Number(await bench.server(0).command("PTTL", key));
    const grew = leftMs > previousMs;
    previousMs = leftMs;
    return grew;
  });
  await locks.drop(kept);
  await bench.untilFree();
});

test("a scoped form that refuses rejects before its work", async () => {
  await expect(opened(() => Promise.reject(new Error("held")))).rejects.toThrow("held");
});

test("a scoped form ends its work at the call of `end`, which returns the outcome", async () => {
  const { given, end } = await opened(async (work: (given: string) => Promise<void>) => {
    await work("signal");
    return "released";
  });
  expect([given, await end()]).toEqual(["signal", "released"]);
});
