import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { hashSlot } from "../../src/clients/hash-slot.ts";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { isLockOf } from "../support/lock-value.ts";
import { watchLeaks } from "../support/leaks.ts";
import {
  failOverTo,
  moveSlot,
  type RedisCluster,
  startRedisCluster,
} from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect } from "../support/redis-harness.ts";
import { isMaster } from "../support/redis-replicas.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

let cluster: RedisCluster;

watchLeaks({ graceMs: 5_000 });
beforeEach(async () => {
  cluster = await startRedisCluster(3, true);
}, 60_000);
afterEach(() => cluster.stop());

async function open(options: RedisStoreOptions = {}): Promise<Locks> {
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  const client = new Cluster(nodes, { redisOptions: { disconnectTimeout: 100 } });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  await eventually(() => client.status === "ready");
  const locks = createLocks(redis(client, options), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

/** Returns a name whose slot belongs to the first master, with that master and its replica. */
async function onFirst(): Promise<{ key: string; master: RedisServer; replica: RedisServer }> {
  const [master] = cluster.nodes;
  const [replica] = cluster.replicas;
  if (master === undefined || replica === undefined) throw new Error("the cluster is too small");
  for (let index = 0; index < 100; index += 1) {
    const key = `invoice:${index}`;
    if ((await cluster.nodeOf(key)) === master) return { key, master, replica };
  }
  throw new Error("no name lives on the first master");
}

/** Acquires and releases `resources` all the time, and records the fences. */
function load(locks: Locks, resources: readonly string[]) {
  const fences = new Map<string, bigint[]>();
  const state = { running: true };
  const work = resources.map(async (resource) => {
    const mine: bigint[] = [];
    fences.set(resource, mine);
    while (state.running) {
      const lease = await locks.tryAcquire(resource).catch(() => undefined);
      if (lease !== undefined) mine.push(lease.fence);
      await lease?.release();
      await sleep(1);
    }
  });
  return {
    fences,
    count: () => [...fences.values()].reduce((sum, each) => sum + each.length, 0),
    async stop() {
      state.running = false;
      await Promise.all(work);
    },
  };
}

function expectIncreasing(fences: readonly bigint[]): void {
  for (const [index, fence] of fences.entries()) {
    if (index > 0) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0n);
  }
}

const ways: readonly [string, (master: RedisServer, replica: RedisServer) => Promise<unknown>][] = [
  ["CLUSTER FAILOVER", (_, replica) => failOverTo(replica)],
  ["SIGKILL", (master) => master.kill()],
];

describe.each(ways)("a %s of the master under a held lease", (_, failOver) => {
  test("keeps a replicated lease, and no other client is granted", async () => {
    const { key, master, replica } = await onFirst();
    const [ours, theirs] = [await open(), await open()];
    const losses = collect(ours, "lost");
    const lease = await ours.acquire(key, { renew: "1s", ttl: "30s" });
    await eventually(async () => (await replica.command("DBSIZE")) !== 0);
    // In slots of all three masters, and in the slot of the lease itself.
    const busy = load(theirs, [key, `{${key}}:beside`, "a", "b", "c", "d"]);
    await eventually(() => busy.count() > 20);
    await failOver(master, replica);
    await eventually(() => isMaster(replica));
    await eventually(async () => await lease.prove());
    const before = busy.count();
    await eventually(() => busy.count() > before + 50);
    expect(busy.fences.get(key)).toEqual([]);
    expect(losses).toEqual([]);
    await eventually(() => lease.state === "held");
    await busy.stop();
    for (const fences of busy.fences.values()) expectIncreasing(fences);
    expect(await eventually(() => lease.release())).toEqual({ released: true });
    const next = await eventually(() => theirs.acquire(key, { wait: "5s" }));
    expect(next.fence).toBeGreaterThan(lease.fence);
    await next.release();
  });
});

test("a grant that is lost with its master is reported as lost at the next renewal", async () => {
  const { key, master, replica } = await onFirst();
  const [ours, theirs] = [await open(), await open()];
  const losses = collect(ours, "lost");
  await (await ours.acquire(key)).release();
  // Cuts the replica off, so that it does not get what the master writes now.
  replica.pause();
  await master.command("CLIENT", "KILL", "TYPE", "replica");
  const lease = await ours.acquire(key, { renew: "1s", ttl: "30s" });
  await master.kill();
  replica.resume();
  await eventually(() => isMaster(replica));
  const second = await eventually(() => theirs.acquire(key, { wait: "5s" }));
  // From now on a guard at the resource refuses the first holder.
  expect(second.fence).toBeGreaterThan(lease.fence);
  await eventually(() => lease.state === "lost");
  expect(losses).toHaveLength(1);
  expect(losses[0]?.reason).toBe("taken");
  expect(lease.signal.aborted).toBe(true);
  await second.release();
});

test("while a slot is moved under load, leases live on and fences keep growing", async () => {
  const { key, master } = await onFirst();
  const target = cluster.nodes[1];
  if (target === undefined) throw new Error("the cluster is too small");
  const [ours, theirs, thirds] = [await open(), await open(), await open()];
  const losses = [ours, theirs, thirds].map((locks) => collect(locks, "lost"));
  const lease = await ours.acquire(key, { renew: "1s", ttl: "30s" });
  const beside = Array.from({ length: 12 }, (_, index) => `{${key}}:${index}`);
  const held = await Promise.all(beside.map((name) => ours.acquire(`${name}:held`)));
  const busy = load(theirs, [key, ...beside]);
  await eventually(() => busy.count() > 50);
  await moveSlot(cluster, hashSlot(key), master, target);
  // No key is left on the old master, and clients go on with the new one.
  expect(await master.command("CLUSTER", "COUNTKEYSINSLOT", String(hashSlot(key)))).toBe(0);
  expect(await target.command("GET", key)).toSatisfy((value) => isLockOf(value, lease));
  const before = busy.count();
  await eventually(() => busy.count() > before + 100);
  expect(await thirds.tryAcquire(key)).toBeUndefined();
  // The clients were really redirected, during the move and after it.
  const errors = String(await master.command("INFO", "errorstats"));
  // A script whose keys are only partly moved gets TRYAGAIN.
  expect(errors).toMatch(/errorstat_(ASK|TRYAGAIN):/);
  expect(errors).toContain("errorstat_MOVED:");
  await busy.stop();
  expect(busy.fences.get(key)).toEqual([]);
  for (const fences of busy.fences.values()) expectIncreasing(fences);
  for (const each of [lease, ...held]) {
    expect(await each.prove()).toBe(true);
    await each.extend();
    expect(await each.release()).toEqual({ released: true });
  }
  expect(losses.flat()).toEqual([]);
  const next = await thirds.acquire(key);
  expect(next.fence).toBeGreaterThan(lease.fence);
  await next.release();
});

test("a lock across slots of all masters survives a failover of one of them", async () => {
  const { key, master, replica } = await onFirst();
  const options = { crossSlot: "ordered" } as const;
  const [ours, theirs] = [await open(options), await open(options)];
  const resources = [key, "a", "b", "c", "d"];
  const owners = new Set(await Promise.all(resources.map((name) => cluster.nodeOf(name))));
  expect(owners.size).toBe(3);
  const lease = await ours.acquire(resources, { ttl: "30s", renew: "1s" });
  await failOverTo(replica);
  // On a busy machine the old master takes some time to learn of the failover.
  await eventually(async () => !(await isMaster(master)), 40_000);
  expect(await eventually(async () => await lease.prove())).toBe(true);
  for (const resource of resources) expect(await theirs.tryAcquire(resource)).toBeUndefined();
  expect(await lease.release()).toEqual({ released: true });
  const next = await theirs.acquire(resources);
  expect(next.fence).toBeGreaterThan(lease.fence);
  await next.release();
});
