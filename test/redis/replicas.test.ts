import { Cluster } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { connectionOf } from "../../src/clients/recognise.ts";
import { createLocks, InvalidOptionError, QuorumError, ReplicationError } from "../../src/index.ts";
import type { Locks } from "../../src/index.ts";
import { acknowledged } from "../../src/stores/redis/failover/acknowledged.ts";
import {
  redis,
  redlock,
  redlockGroups,
  type RedisStoreOptions,
} from "../../src/stores/redis/index.ts";
import { allKinds } from "../clients/client-kinds.ts";
import { diagnose } from "../doctor/findings.ts";
import { isLockOf } from "../support/lock-value.ts";
import { watchLeaks } from "../support/leaks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, connect, rejection } from "../support/redis-harness.ts";
import { startReplicas } from "../support/redis-replicas.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { startTcpProxy } from "../support/tcp-proxy.ts";

let master: RedisServer;
let replica: RedisServer;
const key = "invoice:42";

beforeAll(async () => {
  master = await startRedis();
  const [only] = await startReplicas(master, 1);
  if (only === undefined) throw new Error("there is no replica");
  replica = only;
});
afterAll(async () => {
  await Promise.all([master.stop(), replica.stop()]);
});
beforeEach(async () => {
  await master.command("FLUSHALL");
});
watchLeaks({
  async also() {
    const keys = (await master.command("KEYS", "*")) as string[];
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    return keys.filter((left) => left !== "holdfast:node").map((left) => `the key ${left}`);
  },
});

function open(client: RedisClient, options: RedisStoreOptions = {}): Locks {
  const replicas = { acks: 1, timeout: "300ms" } as const;
  const locks = createLocks(redis(client, { replicas, ...options }), { ttl: "20s" });
  onTestFinished(() => locks.close());
  return locks;
}

async function openHere(options: RedisStoreOptions = {}): Promise<Locks> {
  return open(await connect(master.port), options);
}

/** Stops the replica's process until the test is over, so that it acknowledges nothing. */
function pauseReplica(): void {
  replica.pause();
  onTestFinished(() => replica.resume());
}

async function waitsOf(server: RedisServer): Promise<number> {
  const stats = String(await server.command("INFO", "commandstats"));
  return Number(/^cmdstat_wait:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

/** Returns a connection that records its commands, each with the turn of the event loop. */
function noted(client: RedisClient): RedisConnection & { readonly sent: [string, number][] } {
  const inner = connectionOf(client);
  if (inner === undefined) throw new Error("the client was not recognised");
  const sent: [string, number][] = [];
  let turn = 0;
  return {
    ...inner,
    sent,
    send(given, command) {
      setImmediate(() => (turn += 1));
      sent.push([command[0] ?? "", turn]);
      return inner.send(given, command);
    },
  };
}

function expectFault(error: unknown, fault: string): void {
  expect(error).toBeInstanceOf(QuorumError);
  const { cause } = error as QuorumError;
  expect(cause).toBeInstanceOf(ReplicationError);
  expect(cause).toMatchObject({ fault, code: "REPLICATION" });
}

describe("bad options", () => {
  const bad: readonly [string, object, string][] = [
    ["acks that are no number", { replicas: { acks: "1" } }, "replicas.acks"],
    ["acks below nothing", { replicas: { acks: -1 } }, "replicas.acks"],
    ["half an ack", { replicas: { acks: 0.5 } }, "replicas.acks"],
    ["no acks at all", { replicas: {} }, "replicas.acks"],
    ["replicas that are a number", { replicas: 1 }, "replicas"],
    ["an unknown part", { replicas: { acks: 1, wait: 5 } }, "wait"],
    ["a timeout of 0", { replicas: { acks: 1, timeout: 0 } }, "replicas.timeout"],
    [
      "a timeout beyond nodeTimeout",
      { nodeTimeout: 200, replicas: { acks: 1, timeout: 200 } },
      "replicas.timeout",
    ],
  ];
  test.each(bad)("%s", async (_, options, option) => {
    const client = await connect(master.port);
    const make = () => redis(client, options);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(/`\S+`|there is no option/);
    expect(make).toThrow(expect.objectContaining({ option }));
  });

  test("several nodes, a Cluster, groups, and clients that promise no order", async () => {
    const [one, two] = [await connect(master.port), await connect(master.port)];
    const replicas = { acks: 1 };
    expect(() => redlock([one, two], { replicas })).toThrow(/`replicas`.*several nodes/);
    expect(() => redlockGroups([[one]], { replicas } as object)).toThrow(/`replicas`/);
    const cluster = new Cluster([{ host: "127.0.0.1", port: master.port }], { lazyConnect: true });
    onTestFinished(() => cluster.disconnect());
    expect(() => redis(cluster, { replicas })).toThrow(/`replicas`.*Cluster/);
    const glide = allKinds.find(({ library }) => library === "valkey-glide");
    const opened = await glide?.open(master.port);
    if (opened === undefined) throw new Error("GLIDE is not among the clients");
    onTestFinished(() => void opened.close());
    expect(() => redis(opened.client, { replicas })).toThrow(/several connections/);
  });

  test("a TTL whose nodeTimeout is shorter than the wait, before anything is sent", async () => {
    const connection = noted(await connect(master.port));
    const locks = open(connection);
    const error = await rejection(locks.acquire(key, { ttl: 1_000 }));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(String(error)).toContain("replicas.timeout (300 ms)");
    expect(connection.sent).toEqual([]);
  });
});

const ordered = allKinds.filter(({ library }) => library !== "valkey-glide");

test.each(ordered)("a grant and an extension are on the replica, with $name", async (kind) => {
  const opened = await kind.open(master.port);
  onTestFinished(() => void opened.close());
  const locks = open(opened.client);
  for (let turn = 0; turn < 5; turn += 1) {
    const lease = await locks.acquire(key);
    // Checked without waiting: the replica had the key before the lease was returned.
    expect(await replica.command("GET", key)).toSatisfy((value) => isLockOf(value, lease));
    await lease.extend("25s");
    expect(Number(await replica.command("PTTL", key))).toBeGreaterThan(20_000);
    expect(await lease.prove()).toBe(true);
    expect(await lease.release()).toEqual({ released: true });
  }
});

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", (mode) => {
  test("WAIT is sent in the same turn as the grant, and not after a read or a release", async () => {
    const connection = noted(await connect(master.port));
    const locks = open(connection, mode);
    await (await locks.acquire(key)).release();
    await locks.inspect(key);
    connection.sent.length = 0;
    const lease = await locks.acquire(key);
    await lease.prove();
    await lease.release();
    await locks.inspect(key);
    const names = connection.sent.map(([name]) => name);
    const grant = mode.fencing ? "EVALSHA" : "SET";
    expect(names.slice(0, 2)).toEqual([grant, "WAIT"]);
    expect(names.filter((name) => name === "WAIT")).toHaveLength(1);
    expect(connection.sent[0]?.[1]).toBe(connection.sent[1]?.[1]);
  });

  test("one WAIT is enough for all grants of a turn", async () => {
    const locks = await openHere(mode);
    const resources = Array.from({ length: 16 }, (_, index) => `resource-${index}`);
    // The scripts are loaded, and the handshake is over.
    const warm = await Promise.all(resources.map((name) => locks.acquire(name)));
    await Promise.all(warm.map((lease) => lease.release()));
    const before = await waitsOf(master);
    const leases = await Promise.all(resources.map((name) => locks.acquire(name)));
    expect((await waitsOf(master)) - before).toBe(1);
    for (const name of resources) expect(await replica.command("EXISTS", name)).toBe(1);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("with too few acks a lock is not granted but released, and the call fails with a fault", async () => {
    const locks = await openHere(mode);
    const warnings = collect(locks, "warning");
    await (await locks.acquire(key)).release();
    pauseReplica();
    const errors = [
      await rejection(locks.tryAcquire(key)),
      await rejection(locks.acquire(key, { wait: 0 })),
      ...(await Promise.all(["a", "b", "c"].map((name) => rejection(locks.tryAcquire(name))))),
    ];
    for (const error of errors) {
      expectFault(error, "acks");
      expect(String(error)).toContain("only 0 of 1 replicas confirmed it within 300 ms");
    }
    expect(await master.command("EXISTS", key, "a", "b", "c")).toBe(0);
    const found = warnings.filter(({ code }) => code === "acks-missing");
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({ node: master.url.replace("redis://", ""), level: "error" });
    // Waiting for the replica succeeds.
    const waiting = locks.acquire(key, { wait: "20s" });
    replica.resume();
    const lease = await waiting;
    expect(await replica.command("EXISTS", key)).toBe(1);
    await lease.release();
  });

  test("an extension without acks leaves the lease doubtful, with its old validity", async () => {
    const locks = await openHere(mode);
    const lease = await locks.acquire(key);
    await lease.extend("20s");
    const doubts = collect(locks, "doubtful");
    pauseReplica();
    const before = lease.remainingMs();
    expectFault(await rejection(lease.extend("28s")), "acks");
    expect(lease.state).toBe("doubtful");
    expect(lease.remainingMs()).toBeLessThanOrEqual(before);
    expect(doubts).toHaveLength(1);
    replica.resume();
    await eventually(() => lease.extend("28s"));
    expect(lease.state).toBe("held");
    expect(lease.remainingMs()).toBeGreaterThan(20_000);
    await lease.release();
  });

  test("a renewal without acks leaves the lease doubtful", async () => {
    const locks = await openHere(mode);
    const names = [key, `${key}:too`];
    const leases = await Promise.all(names.map((name) => locks.acquire(name, { renew: 100 })));
    pauseReplica();
    await eventually(() => leases.every(({ state }) => state === "doubtful"));
    replica.resume();
    await eventually(() => leases.every(({ state }) => state === "held"));
    await Promise.all(leases.map((lease) => lease.release()));
  });

  test("a lock held by others is contention, whatever the replicas do", async () => {
    const [ours, theirs] = [await openHere(mode), await openHere(mode)];
    const lease = await ours.acquire(key);
    pauseReplica();
    expect(await theirs.tryAcquire(key)).toBeUndefined();
    replica.resume();
    await lease.release();
  });
});

test("a WAIT that a driver resends on another connection does not count", async () => {
  const proxy = await startTcpProxy(master.port);
  const locks = open(await connect(proxy.port), { replicas: { acks: 1, timeout: "2s" } });
  await (await locks.acquire(key)).release();
  pauseReplica();
  const waits = await waitsOf(master);
  const attempt = rejection(locks.tryAcquire(key));
  // The grant has been made and answered. The connection breaks during the wait for the replica.
  await eventually(async () => (await master.command("EXISTS", key)) === 1);
  proxy.reset();
  replica.resume();
  const error = await attempt;
  expect(error).toBeInstanceOf(QuorumError);
  await eventually(async () => (await master.command("EXISTS", key)) === 0);
  expect(await waitsOf(master)).toBeGreaterThan(waits);
});

describe("a server that accepts no writes", () => {
  test("is waited for if min-replicas-to-write refuses the writes", async () => {
    const locks = open(await connect(master.port), { replicas: { acks: 0 } });
    await master.command("CONFIG", "SET", "min-replicas-to-write", "2");
    onTestFinished(async () => {
      await master.command("CONFIG", "SET", "min-replicas-to-write", "0");
    });
    const error = await rejection(locks.tryAcquire(key));
    expectFault(error, "min-replicas");
    expect(String(error)).toContain("min-replicas-to-write");
    const attempts = collect(locks, "attempt");
    const waiting = locks.acquire(key, { wait: "20s" });
    await eventually(() => attempts.length > 1);
    await master.command("CONFIG", "SET", "min-replicas-to-write", "0");
    await (await waiting).release();
  });

  test("is recognised as a demoted master, and its key is released later", async () => {
    const lonely = await startRedis();
    onTestFinished(() => lonely.stop());
    const locks = open(await connect(lonely.port), { replicas: { acks: 0 } });
    const lease = await locks.acquire(key);
    await lonely.command("REPLICAOF", "127.0.0.1", "1");
    const error = await rejection(locks.tryAcquire("other"));
    expectFault(error, "demoted");
    expect(String(error)).toContain("the server is a replica");
    expect(await lease.release()).toEqual({ released: false, reason: "unreachable" });
    expect(await lonely.command("EXISTS", key)).toBe(1);
    await lonely.command("REPLICAOF", "NO", "ONE");
    await eventually(async () => (await lonely.command("EXISTS", key)) === 0);
  });
});

describe("the doctor", () => {
  test("reports that more acks are required than replicas are connected", async () => {
    const found = await diagnose(await openHere({ replicas: { acks: 2 } }), "acks-missing");
    expect(found).toMatchObject({ level: "error", node: master.url.replace("redis://", "") });
    expect(found.what).toContain("replicas.acks is 2, and 1 replica(s) are connected");
    const enough = await (await openHere()).doctor();
    expect(enough.map(({ code }) => code)).not.toContain("acks-missing");
    expect(enough.find(({ code }) => code === "replicas")?.remedy).toContain("guard writes");
  });

  test("reports that WAIT is not allowed, and then no lock is granted", async () => {
    const rights = ["on", ">secret", "~*", "&*", "+@all", "-wait"];
    await master.command("ACL", "SETUSER", "hasty", ...rights);
    onTestFinished(async () => {
      await master.command("ACL", "DELUSER", "hasty");
    });
    const client = await connect(master.port, { username: "hasty", password: "secret" });
    const locks = open(client);
    const found = await diagnose(locks, "permission-missing");
    expect(found.what).toContain("WAIT");
    const error = await rejection(locks.acquire(key));
    expect(error).toBeInstanceOf(QuorumError);
    expect(String(error)).toContain("NOPERM");
    expect(await master.command("EXISTS", key)).toBe(0);
  });
});

test("a connection written as a class keeps its methods if acks are used", async () => {
  const client = await connect(master.port);
  const given = connectionOf(client);
  if (given === undefined) throw new Error("ioredis is not recognised");
  class OwnConnection implements RedisConnection {
    readonly library = "own";
    readonly topology = "standalone";
    readonly #given: RedisConnection;
    constructor(connection: RedisConnection) {
      this.#given = connection;
    }
    send(name: string, command: readonly string[]): Promise<unknown> {
      return this.#given.send(name, command);
    }
    line(): object | undefined {
      return this.#given.line?.();
    }
  }
  const own = new OwnConnection(given);
  const both = acknowledged(own, { acks: 1, timeoutMs: 100 }, () => undefined);
  expect(both.line?.()).toBe(own.line());
  expect(both.line?.()).toBeDefined();
  expect("subscribe" in both).toBe(false);
  expect(await both.send("", ["PING"])).toBe("PONG");
});
