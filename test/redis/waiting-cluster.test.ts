import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type CreateLocksOptions, type Locks } from "../../src/index.ts";
import { redis, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { listenersOf, withoutTimers } from "./waiting-scene.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.stop());

watchLeaks({
  async also() {
    const found = await Promise.all(cluster.nodes.map((node) => node.command("KEYS", "*")));
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    const left = (found as string[][]).flat().filter((key) => !key.endsWith(":fence"));
    return left.map((key) => `the key ${JSON.stringify(key)}`);
  },
});

async function openLocks(
  store: RedisStoreOptions = {},
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const client = new Cluster(nodes, { redisOptions: { disconnectTimeout: 100 } });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  await eventually(() => client.status === "ready");
  const locks = createLocks(redis(client, store), { ttl: "20s", wait: "forever", ...defaults });
  onTestFinished(() => locks.close());
  return locks;
}

async function untilWaiting(locks: Locks, resource: string, waiters: number): Promise<void> {
  await eventually(async () => {
    expect(await locks.inspect(resource)).toMatchObject({ state: "held", waiters });
  });
}

describe("in a Cluster", () => {
  test("a release notifies the next waiter by a sharded message, on any node", async () => {
    const ours = await openLocks();
    const theirs = await openLocks({}, { runtime: withoutTimers });
    for (const resource of ["a", "b", "c", "{d}:e", "f}g"]) {
      const holder = await ours.acquire(resource);
      const waiting = theirs.acquire(resource);
      await untilWaiting(ours, resource, 1);
      await holder.release();
      await (await waiting).release();
    }
  });

  test("managers are served in the order of arrival", async () => {
    const ours = await openLocks();
    const holder = await ours.acquire("order");
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    for (let index = 0; index < 4; index += 1) {
      const locks = await openLocks();
      waiting.push(
        locks.using("order", () => {
          served.push(index);
        }),
      );
      await untilWaiting(ours, "order", index + 1);
    }
    await holder.release();
    await Promise.all(waiting);
    expect(served).toEqual([0, 1, 2, 3]);
  });

  test("names that differ only in braces share a slot, but not a queue", async () => {
    const [ours, theirs] = [await openLocks(), await openLocks()];
    const holder = await ours.acquire("x");
    const waiting = theirs.acquire("x");
    await untilWaiting(ours, "x", 1);
    expect(await ours.inspect("{x}")).toMatchObject({ state: "free", waiters: 0 });
    const other = await ours.tryAcquire("{x}");
    expect(other?.state).toBe("held");
    const waitingToo = theirs.acquire("{x}");
    await untilWaiting(ours, "{x}", 1);
    await other?.release();
    // The waiters of `x` still wait, and got no notification.
    await (await waitingToo).release();
    expect(await ours.inspect("x")).toMatchObject({ state: "held", waiters: 1 });
    await holder.release();
    await (await waiting).release();
  });

  test("several resources of one slot can be waited for together, and block no waiter of one of them", async () => {
    const ours = await openLocks();
    const theirs = await openLocks({}, { runtime: withoutTimers });
    const holder = await ours.acquire("{t}:a");
    const waiting = theirs.acquire(["{t}:a", "{t}:b"]);
    await untilWaiting(ours, "{t}:a", 1);
    const free = await ours.tryAcquire("{t}:b");
    expect(free?.state).toBe("held");
    await free?.release();
    await holder.release();
    await (await waiting).release();
  });

  test("a waiter that leaves leaves no entry behind, and close ends all subscriptions", async () => {
    const ours = await openLocks();
    const theirs = await openLocks();
    const holder = await ours.acquire("left");
    const late = theirs.acquire("left", { wait: 50 }).catch((error: unknown) => error);
    expect(await late).toMatchObject({ code: "ACQUIRE_TIMEOUT" });
    expect(await ours.inspect("left")).toMatchObject({ state: "held", waiters: 0 });
    await theirs.close();
    const counts = () => Promise.all(cluster.nodes.map(listenersOf));
    await eventually(async () => expect(await counts()).toEqual([0, 0, 0]));
    await holder.release();
  });

  test("without fences waiters poll", async () => {
    const [ours, theirs] = [
      await openLocks({ fencing: false }),
      await openLocks({ fencing: false }),
    ];
    const holder = await ours.acquire("plain");
    const waiting = theirs.acquire("plain");
    await holder.release();
    await (await waiting).release();
  });
});
