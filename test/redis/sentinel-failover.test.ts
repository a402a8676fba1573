import { setTimeout as sleep } from "node:timers/promises";
import { createSentinel } from "redis";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Lease, type Locks } from "../../src/index.ts";
import { redis, type RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { isLockOf } from "../support/lock-value.ts";
import { watchLeaks } from "../support/leaks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect } from "../support/redis-harness.ts";
import { isMaster } from "../support/redis-replicas.ts";
import {
  connectBySentinel,
  type RedisSentinel,
  startRedisSentinel,
} from "../support/redis-sentinel.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

const key = "invoice:42";
let sentinel: RedisSentinel;

watchLeaks({ graceMs: 5_000 });
// Each test has its own servers, because a failover changes them: three Sentinels, three servers.
beforeEach(async () => {
  sentinel = await startRedisSentinel(3, 2);
}, 60_000);
afterEach(() => sentinel.stop());

async function open(options: RedisStoreOptions = {}): Promise<Locks> {
  const locks = createLocks(redis(await connectBySentinel(sentinel), options), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

const ways: readonly [string, () => Promise<void>][] = [
  // The old master learns of it some ten seconds later, and its clients stay with it until then.
  ["SENTINEL FAILOVER", () => sentinel.failover()],
  [
    "SIGKILL",
    async () => {
      const before = await sentinel.masterPort();
      await sentinel.master.kill();
      await eventually(async () => (await sentinel.masterPort()) !== before);
    },
  ],
];

async function newMaster(): Promise<RedisServer> {
  const server = await sentinel.masterNow();
  expect(server).not.toBe(sentinel.master);
  await eventually(() => isMaster(server));
  return server;
}

describe.each([{ acks: 0 }, { acks: 1 }])("with acks $acks", ({ acks }) => {
  test.each(ways)("a lease that is replicated survives a %s", async (_, failOver) => {
    const replicas = { acks, timeout: "1s" } as const;
    const [ours, theirs] = [await open({ replicas }), await open()];
    const doubts = collect(ours, "doubtful");
    const replaced = collect(ours, "node-replaced");
    const losses = collect(ours, "lost");
    const lease = await ours.acquire(key, { ttl: "30s" });
    // Without acks every replica gets the key as well, but a little later.
    for (const server of sentinel.servers.slice(1)) {
      await eventually(async () => (await server.command("EXISTS", key)) === 1);
    }
    await failOver();
    const master = await newMaster();
    // The lease is not renewed: the survey of the server detects the failover.
    await eventually(() => doubts.length > 0);
    expect(doubts[0]?.cause).toMatchObject({ code: "REPLICATION" });
    expect(replaced.length).toBeGreaterThan(0);
    await eventually(() => lease.state === "held");
    expect(losses).toEqual([]);
    expect(await master.command("GET", key)).toSatisfy((value) => isLockOf(value, lease));
    expect(await eventually(async () => await theirs.tryAcquire(key))).toBeUndefined();
    expect(await lease.prove()).toBe(true);
    expect(await lease.release()).toEqual({ released: true });
    const next = await eventually(() => theirs.acquire(key, { wait: "5s" }));
    expect(next.fence).toBeGreaterThan(lease.fence);
    await next.release();
  });
});

/** Cuts the replicas off, so that the next grant is only on the master, and is lost with it. */
async function grantThatDies(take: () => Promise<Lease>): Promise<Lease> {
  const replicas = sentinel.servers.slice(1);
  // Stopped, so that they do not reconnect: they do not get what the master writes now.
  for (const replica of replicas) replica.pause();
  await sentinel.master.command("CLIENT", "KILL", "TYPE", "replica");
  try {
    return await take();
  } finally {
    await sentinel.master.kill();
    for (const replica of replicas) replica.resume();
    await eventually(async () => (await sentinel.masterPort()) !== sentinel.master.port);
  }
}

test("without acks a grant can be lost with its master: it is reported lost, and the next fence is greater", async () => {
  const [ours, theirs] = [await open(), await open()];
  const reported: string[] = [];
  ours.on("doubtful", () => reported.push("doubtful"));
  ours.on("lost", ({ reason }) => reported.push(`lost: ${reason}`));
  // Acquired once before, so that the node record is on the replicas as well.
  await (await ours.acquire(key)).release();
  const lease = await grantThatDies(() => ours.acquire(key, { ttl: "30s" }));
  await newMaster();
  const second = await eventually(() => theirs.acquire(key, { wait: "5s" }));
  // From now on a guard at the resource refuses the first holder.
  expect(second.fence).toBeGreaterThan(lease.fence);
  await eventually(() => lease.state === "lost");
  expect(reported).toEqual(["doubtful", "lost: taken"]);
  expect(lease.signal.aborted).toBe(true);
  expect(await lease.release()).toEqual({ released: false, reason: "taken" });
  await second.release();
});

test("with acks such a grant is never returned as a lease", async () => {
  const [ours, theirs] = [await open({ replicas: { acks: 1, timeout: "500ms" } }), await open()];
  await (await ours.acquire(key)).release();
  const granted = collect(ours, "acquired");
  await expect(grantThatDies(() => ours.acquire(key, { wait: 0 }))).rejects.toMatchObject({
    code: "QUORUM",
    cause: { code: "REPLICATION", fault: "acks" },
  });
  expect(granted).toEqual([]);
  await newMaster();
  const second = await eventually(() => theirs.acquire(key, { wait: "5s" }));
  await second.release();
});

test("a renewed lease survives a failover under load, and no other client is granted", async () => {
  const managers = [await open({ replicas: { acks: 2, timeout: "1s" } }), await open()];
  const holder = managers[0];
  const rival = managers[1];
  if (holder === undefined || rival === undefined) throw new Error("not reached");
  const lease = await holder.acquire(key, { renew: true, ttl: "20s" });
  const load = { running: true };
  const stolen: bigint[] = [];
  const fences: bigint[] = [];
  const rivals = Array.from({ length: 8 }, async (_, index) => {
    while (load.running) {
      const found = await rival.tryAcquire(key).catch(() => undefined);
      if (found !== undefined && lease.state !== "lost") stolen.push(found.fence);
      const own = await rival.tryAcquire(`own:${index}`).catch(() => undefined);
      if (own !== undefined && index === 0) fences.push(own.fence);
      await own?.release();
      // A client without a connection refuses at once, so the loop needs a turn of the event loop.
      await sleep(1);
    }
  });
  await eventually(() => fences.length > 20);
  await sentinel.failover();
  await newMaster();
  const after = fences.length;
  await eventually(() => fences.length > after + 20);
  load.running = false;
  await Promise.all(rivals);
  expect(stolen).toEqual([]);
  await eventually(() => lease.state === "held");
  for (const [index, fence] of fences.entries()) {
    if (index > 0) expect(fence).toBeGreaterThan(fences[index - 1] ?? 0n);
  }
  expect(await eventually(() => lease.prove())).toBe(true);
  await lease.release();
});

test("node-redis' Sentinel client: locks, a failover, and the lease is proven again", async () => {
  const client = createSentinel({
    name: sentinel.name,
    sentinelRootNodes: [...sentinel.sentinels],
    scanInterval: 100,
    nodeClientOptions: { socket: { reconnectStrategy: 50 } },
  });
  client.on("error", () => undefined);
  await client.connect();
  onTestFinished(() => client.destroy());
  expect(() => redis(client, { replicas: { acks: 1 } })).toThrow(/several connections/);
  const locks = createLocks(redis(client), { ttl: "20s" });
  onTestFinished(() => locks.close());
  const doubts = collect(locks, "doubtful");
  const lease = await locks.acquire(key, { ttl: "30s" });
  for (const server of sentinel.servers) {
    await eventually(async () => (await server.command("EXISTS", key)) === 1);
  }
  await sentinel.failover();
  await newMaster();
  await eventually(() => doubts.length > 0);
  await eventually(() => lease.state === "held");
  expect(await lease.release()).toEqual({ released: true });
});
