import { expect, test } from "vitest";
import { createLocks, type Lease, type Locks } from "../../src/index.ts";
import { redlock } from "../../src/stores/redis/index.ts";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import { FenceJournal } from "../protocol/fence-journal.ts";
import { collect, nodeRecordKey, shareRedis } from "../support/redis-harness.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import {
  admit,
  dialAll,
  everyNodeVotes,
  field,
  maxTtl,
  openAdmitted,
  openDoor,
} from "./strict-locks.ts";

/** Every way in which a server comes back with less data than it had. */

const redis = shareRedis(3);
const patient = { wait: "40s", retry: { minDelay: 5, maxDelay: 50 } } as const;

async function useOnce(journal: FenceJournal, locks: Locks, resource = "a"): Promise<bigint> {
  const lease = await journal.acquire(locks, resource, patient);
  await lease.release();
  return lease.fence;
}

/**
 * Acquires until this server has granted as well, because a quorum does not wait for the slowest.
 */
async function useUntilCounted(journal: FenceJournal, locks: Locks, server: RedisServer) {
  let last = 0n;
  await expect
    .poll(
      async () => {
        last = await useOnce(journal, locks);
        return (await field(server, String(shardOf("a")))) === String(last);
      },
      { timeout: 20_000 },
    )
    .toBe(true);
  return last;
}

/** Acquires until node-1 is reported as blank. */
async function useUntilBlank(journal: FenceJournal, locks: Locks): Promise<void> {
  const blank = collect(locks, "node-blank");
  await expect
    .poll(
      async () => {
        await useOnce(journal, locks);
        return blank.length;
      },
      { timeout: 20_000 },
    )
    .toBeGreaterThan(0);
}

/**
 * Expects that this server has granted no lock since it came back, and that its counter is behind.
 */
async function expectNothingGranted(server: RedisServer, below: bigint): Promise<void> {
  const counter = await field(server, String(shardOf("a")));
  expect(BigInt(counter ?? 0)).toBeLessThan(below);
  expect(await field(server, "st")).toBe("Q");
}

test("a server that comes back empty is quarantined, copies the counters, and then votes", async () => {
  const locks = await openAdmitted(redis);
  const events: string[] = [];
  locks.on("node-blank", ({ node }) => events.push(`${node} blank`));
  locks.on("node-quarantined", ({ node }) => events.push(`${node} quarantined`));
  locks.on("node-admitted", ({ node, mode }) => events.push(`${node} admitted by ${mode}`));
  const left = collect(locks, "node-quarantined");
  const why = collect(locks, "node-blank");
  const journal = new FenceJournal();
  await useOnce(journal, locks);
  const server = redis.server(0);
  await server.restart({ empty: true });
  await useUntilBlank(journal, locks);
  const noticed = await locks.nodes();
  expect(noticed.map(({ admission }) => admission)).toEqual([
    "quarantined",
    "admitted",
    "admitted",
  ]);
  expect(noticed[0]?.quarantineRemainingMs).toBeLessThanOrEqual(1.2 * maxTtl);
  const [{ fence } = { fence: 0n }] = journal.entries.slice(-1);
  await everyNodeVotes(locks);
  expect(events).toEqual(["node-1 blank", "node-1 quarantined", "node-1 admitted by copy"]);
  expect(why[0]?.why).toContain("has no record of its own");
  expect(left[0]?.remainingMs).toBeGreaterThan(0);
  expect(left[0]?.remainingMs).toBeLessThanOrEqual(1.2 * maxTtl);
  // Copied from the other nodes: this server never had it.
  const counter = await field(server, String(shardOf("a")));
  expect(BigInt(counter ?? 0)).toBeGreaterThanOrEqual(fence);
  // Now its vote is needed.
  redis.freeze(1);
  await useOnce(journal, locks);
  redis.thaw(1);
  expect(journal.disorder()).toEqual([]);
});

test("a server that comes back from an old snapshot detects that it restarted", async () => {
  const locks = await openAdmitted(redis);
  const journal = new FenceJournal();
  await useOnce(journal, locks);
  const server = redis.server(0);
  await server.command("SAVE");
  const last = [await useOnce(journal, locks), await useOnce(journal, locks)].at(-1) ?? 0n;
  const modes = collect(locks, "node-admitted");
  const why = collect(locks, "node-blank");
  await server.restart();
  // The record says "admitted", but by an earlier process. Or a driver has already sent a command
  // again, and the server was quarantined by it.
  expect(["A", "Q"]).toContain(await field(server, "st"));
  await useUntilBlank(journal, locks);
  await expectNothingGranted(server, last);
  expect(why.map(({ why }) => why)).toEqual([
    "it restarted, or another server took its place, since it was admitted",
  ]);
  await everyNodeVotes(locks);
  expect(modes.map(({ mode }) => mode)).toEqual(["copy"]);
  const counter = BigInt((await field(server, String(shardOf("a")))) ?? 0);
  expect(counter).toBeGreaterThanOrEqual(last);
  await useOnce(journal, locks);
  expect(journal.disorder()).toEqual([]);
});

test("a server that comes back from its append-only file is quarantined as well", async () => {
  const server = redis.server(0);
  await server.restart({ empty: true, args: ["--appendonly", "yes", "--appendfsync", "always"] });
  const locks = await openAdmitted(redis);
  const journal = new FenceJournal();
  const last = await useUntilCounted(journal, locks, server);
  const modes = collect(locks, "node-admitted");
  await server.restart();
  // Nothing was lost this time, but the server cannot know that.
  expect(await field(server, String(shardOf("a")))).toBe(String(last));
  await useUntilBlank(journal, locks);
  expect(await field(server, "st")).toBe("Q");
  await everyNodeVotes(locks);
  expect(modes.map(({ mode }) => mode)).toEqual(["copy"]);
  expect(journal.disorder()).toEqual([]);
  await server.restart({ empty: true, args: [] });
});

test("a replica that takes its master's place is quarantined like any other server", async (context) => {
  const master = redis.server(0);
  const replica = await startRedis({ args: ["--repl-diskless-sync-delay", "0"] });
  context.onTestFinished(() => replica.stop());
  await master.command("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  await Promise.all(redis.servers.map((server) => admit(server)));
  const door = await openDoor(master.port);
  const ports = [door.port, ...redis.servers.slice(1).map(({ port }) => port)];
  const store = redlock(dialAll(ports), { maxTtl });
  const locks = createLocks(store, { ttl: maxTtl });
  context.onTestFinished(() => locks.close());
  const journal = new FenceJournal();
  await useUntilCounted(journal, locks, master);
  await replica.command("REPLICAOF", "127.0.0.1", String(master.port));
  const shard = String(shardOf("a"));
  await expect.poll(() => field(replica, shard), { timeout: 20_000 }).not.toBeNull();
  const modes = collect(locks, "node-admitted");
  const last = await useOnce(journal, locks);
  await master.kill();
  await replica.command("REPLICAOF", "NO", "ONE");
  expect(await field(replica, "st")).toBe("A");
  door.leadTo(replica.port);
  await useUntilBlank(journal, locks);
  expect(await field(replica, "st")).toBe("Q");
  await everyNodeVotes(locks);
  expect(modes.map(({ mode }) => mode)).toEqual(["copy"]);
  const counter = BigInt((await field(replica, shard)) ?? 0);
  expect(counter).toBeGreaterThanOrEqual(last);
  expect(journal.disorder()).toEqual([]);
  await locks.close();
  await master.restart();
});

test("a held lease outlives the restart of one server, and is still renewed", async () => {
  // Long enough to be renewed in time on a busy machine.
  const ttl = 4_000;
  const locks = await openAdmitted(redis, { maxTtl: ttl }, { ttl });
  const lease = await locks.acquire("a", { renew: true });
  const renewed = collect(locks, "renewed");
  const lost = collect(locks, "lost");
  await redis.server(0).restart({ empty: true });
  const before = renewed.length;
  await expect.poll(() => renewed.length, { timeout: 20_000 }).toBeGreaterThan(before + 1);
  await everyNodeVotes(locks);
  expect(await lease.prove()).toBe(true);
  expect(lease.state).toBe("held");
  expect(lost).toEqual([]);
  // An extension never creates a missing key.
  expect(await redis.server(0).command("EXISTS", "a")).toBe(0);
  expect(await lease.release()).toEqual({ released: true });
});

test("a lease cannot be stolen through a server that comes back empty", async () => {
  const mine = await openAdmitted(redis);
  const rival = await openAdmitted(redis);
  // The lease is on nodes 1 and 2 only: node 3 was held by another client.
  await redis.holdByForeigner([2], "a");
  const held: Lease = await mine.acquire("a");
  await redis.freeByForeigner([2], "a");
  const [key] = await redis.values("a");
  expect(String(key)).toContain(`|${held.fence}`);
  await redis.server(0).restart({ empty: true });
  const stolen = await rival.acquire("a", patient);
  // Without a quarantine, nodes 1 and 3 would have granted at once. It took until the lease
  // expired.
  expect(held.state).toBe("lost");
  expect(stolen.fence).toBeGreaterThan(held.fence);
  await stolen.release();
});

test("when a majority lost its data, nodes are admitted by clocks after the quarantine, with a warning", async () => {
  const locks = await openAdmitted(redis);
  const journal = new FenceJournal();
  await useOnce(journal, locks);
  const modes = collect(locks, "node-admitted");
  const warnings = collect(locks, "warning");
  await Promise.all([0, 1].map((index) => redis.server(index).restart({ empty: true })));
  await useOnce(journal, locks);
  await everyNodeVotes(locks);
  expect(modes.map(({ node }) => node).sort()).toEqual(["node-1", "node-2"]);
  // The second node may find the first one admitted already, and copy from it.
  expect(modes[0]?.mode).toBe("clock");
  const byClock = warnings.find(({ code }) => code !== "admission-countdown");
  expect(byClock?.what).toContain("was admitted without a copy of the counters");
  expect(byClock?.why).toContain("clocks");
  expect(journal.disorder()).toEqual([]);
});

test("when its record is deleted, a node waits and copies, although it still has its keys", async () => {
  const locks = await openAdmitted(redis);
  const journal = new FenceJournal();
  const last = await useOnce(journal, locks);
  const modes = collect(locks, "node-admitted");
  await redis.server(0).command("DEL", nodeRecordKey);
  await useUntilBlank(journal, locks);
  await everyNodeVotes(locks);
  expect(modes.map(({ mode }) => mode)).toEqual(["copy"]);
  const counter = BigInt((await field(redis.server(0), String(shardOf("a")))) ?? 0);
  expect(counter).toBeGreaterThanOrEqual(last);
  expect(journal.disorder()).toEqual([]);
});
