import { Cluster } from "ioredis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  createLocks,
  HoldfastError,
  InvalidOptionError,
  type Locks,
  UnsupportedError,
} from "../../src/index.ts";
import { redis, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { type RedisCluster, startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { rejection, watchConnection } from "../support/redis-harness.ts";

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.stop());

watchLeaks({
  async also() {
    const left = await keys((key) => !isCounter(key));
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    return left.map((key) => `the key ${JSON.stringify(key)}`);
  },
});

/** True for a counter: these stay beside their locks for a day. */
function isCounter(key: string): boolean {
  return key.startsWith("holdfast:") && key.endsWith(":fence");
}

async function keys(matches: (key: string) => boolean): Promise<string[]> {
  const found = await Promise.all(cluster.nodes.map((node) => node.command("KEYS", "*")));
  return (found as string[][]).flat().filter(matches);
}

async function connectCluster(): Promise<Cluster> {
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const client = new Cluster(nodes, { redisOptions: { disconnectTimeout: 100 } });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  await eventually(() => client.status === "ready");
  return client;
}

async function openClusterLocks(options: RedisStoreOptions = {}): Promise<Locks> {
  const locks = createLocks(redis(await connectCluster(), options), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", (mode) => {
  test("a lock excludes others, on any node of the Cluster", async () => {
    const [ours, theirs] = [await openClusterLocks(mode), await openClusterLocks(mode)];
    for (let index = 0; index < 12; index += 1) {
      const resource = `invoice:${index}`;
      const lease = await ours.acquire(resource, { label: "ours" });
      expect(await theirs.tryAcquire(resource)).toBeUndefined();
      expect(await theirs.inspect(resource)).toMatchObject({ state: "held", label: "ours" });
      expect(await lease.prove()).toBe(true);
      await lease.extend();
      expect(await lease.release()).toEqual({ released: true });
      expect(await theirs.inspect(resource)).toMatchObject({ state: "free" });
    }
  });

  test("several resources of one hash tag are acquired together", async () => {
    const [ours, theirs] = [await openClusterLocks(mode), await openClusterLocks(mode)];
    const resources = ["{account}:7", "{account}:9"];
    const lease = await ours.acquire(resources);
    for (const resource of resources) expect(await theirs.tryAcquire(resource)).toBeUndefined();
    expect(await lease.release()).toEqual({ released: true });
    expect(await keys((key) => !isCounter(key))).toEqual([]);
  });

  test("resources of different slots are refused at once, with a remedy", async () => {
    const connection = watchConnection(await connectCluster());
    const locks = createLocks(redis(connection, mode));
    onTestFinished(() => locks.close());
    const resources = ["account:7", "account:9"];
    for (const call of [
      locks.acquire(resources),
      locks.tryAcquire(resources),
      locks.using(resources, () => "never"),
    ]) {
      const error = await rejection(call);
      expect(error).toBeInstanceOf(UnsupportedError);
      expect(error).toMatchObject({ resources: expect.arrayContaining(resources) });
      expect(String(error)).toContain("hash tag");
      expect(String(error)).toContain('"{group}:account:7"');
    }
    expect(connection.sent).toEqual([]);
  });
});

test("each grant has a greater fence, with one counter per lock", async () => {
  const managers = [await openClusterLocks(), await openClusterLocks()];
  const fences: bigint[] = [];
  for (let turn = 0; turn < 6; turn += 1) {
    const lease = await managers[turn % 2]?.acquire("invoice:42");
    if (lease === undefined) throw new Error("not reached");
    fences.push(lease.fence);
    await lease.release();
  }
  for (const [index, fence] of fences.entries()) {
    if (index > 0) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0n);
  }
});

test.each([
  "a}b",
  "{}x",
  "{a}b",
  "}{",
  "{",
  "}",
  "{{a}}",
  "{}{a}",
  "a{b}{c}d",
  "ü{ö}",
  "x {y z} }",
  "a\n{b}",
])("the counter of %j is in the slot of its lock", async (resource) => {
  const locks = await openClusterLocks();
  const first = await locks.acquire(resource);
  const node = await cluster.nodeOf(resource);
  expect(await node.command("EXISTS", resource)).toBe(1);
  const slot = await node.command("CLUSTER", "KEYSLOT", resource);
  const counters = await keys((key) => isCounter(key) && key.includes(resource));
  const slots = await Promise.all(counters.map((key) => node.command("CLUSTER", "KEYSLOT", key)));
  expect(slots).toContain(slot);
  await first.release();
  const second = await locks.acquire(resource);
  expect(second.fence).toBeGreaterThan(first.fence);
  await second.release();
});

test('resources of different slots are acquired one after the other with crossSlot "ordered"', async () => {
  const options = { crossSlot: "ordered" } as const;
  const [ours, theirs] = [await openClusterLocks(options), await openClusterLocks(options)];
  const resources = ["account:7", "account:9", "account:11"];
  const lease = await ours.acquire(resources);
  for (const resource of resources) expect(await theirs.tryAcquire(resource)).toBeUndefined();
  expect(await theirs.tryAcquire([...resources, "account:13"])).toBeUndefined();
  expect(await keys((key) => key === "account:13")).toEqual([]);
  expect(await lease.prove()).toBe(true);
  await lease.extend();
  expect(await lease.release()).toEqual({ released: true });
  expect(await keys((key) => !isCounter(key))).toEqual([]);
});

test("the slots before one that refuses for good are released", async () => {
  const locks = await openClusterLocks({ crossSlot: "ordered" });
  const slots = await Promise.all(
    ["account:7", "account:9", "account:11"].map(async (name) => {
      const node = await cluster.nodeOf(name);
      return { name, node, slot: Number(await node.command("CLUSTER", "KEYSLOT", name)) };
    }),
  );
  slots.sort((a, b) => a.slot - b.slot);
  const last = slots.at(-1);
  await last?.node.command("LPUSH", last.name, "not a lock");
  const names = slots.map(({ name }) => name);
  const attempts: unknown[] = [];
  locks.on("attempt", (event) => attempts.push(event));
  await expect(locks.acquire(names, { wait: "30s" })).rejects.toThrow(HoldfastError);
  expect(attempts).toHaveLength(1);
  expect(await keys((key) => !isCounter(key))).toEqual([last?.name]);
  await last?.node.command("DEL", last.name);
  // Nothing is sent if one of the names is reserved.
  const before = (await keys(() => true)).length;
  await expect(locks.acquire(["free:1", "holdfast:x"])).rejects.toThrow("holdfast:");
  expect(await keys(() => true)).toHaveLength(before);
});

test("a Cluster has no admission", async () => {
  const client = await connectCluster();
  expect(() => redis(client, { admission: "strict" })).toThrow(InvalidOptionError);
});
