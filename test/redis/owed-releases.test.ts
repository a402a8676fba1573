import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Lease, type Locks, type Runtime } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { redlock } from "../../src/stores/redis/index.ts";
import { textOf } from "../support/sent-operations.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, connect, openLocks, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";
import { startTcpProxy } from "../support/tcp-proxy.ts";

// A snapshot cannot be written while a directory has its name.
const snapshot = "blocked.rdb";
const bench = shareRedis(3, ["--dbfilename", snapshot]);
const key = "invoice:42";
const ttl = "60s";
const unconfirmed = { released: false, reason: "unreachable" };

async function lastSaveStatus(server: RedisServer): Promise<string | undefined> {
  const info = String(await server.command("INFO", "persistence"));
  if (!info.includes("rdb_bgsave_in_progress:0")) return undefined;
  return /rdb_last_bgsave_status:(\w+)/.exec(info)?.[1];
}

interface Sickness {
  readonly error: string;
  /** Returns the function that heals the server. */
  readonly strike: (server: RedisServer) => Promise<() => Promise<unknown>>;
}

const sicknesses: readonly Sickness[] = [
  {
    error: "BUSY",
    strike: async (server) => {
      await server.command("CONFIG", "SET", "lua-time-limit", "5");
      const looping = server.command("EVAL", "while true do end", "0").catch(() => undefined);
      await eventually(async () => {
        return await server.command("PING").then(
          () => false,
          (error: unknown) => String(error).includes("BUSY"),
        );
      });
      return async () => {
        await server.command("SCRIPT", "KILL");
        await looping;
      };
    },
  },
  {
    error: "MISCONF",
    strike: async (server) => {
      const inTheWay = join(server.dir, snapshot);
      rmSync(inTheWay, { recursive: true, force: true });
      mkdirSync(inTheWay);
      await server.command("CONFIG", "SET", "save", "3600 1");
      await server.command("BGSAVE");
      await eventually(async () => (await lastSaveStatus(server)) === "err");
      return async () => {
        rmSync(inTheWay, { recursive: true });
        await server.command("BGSAVE");
        await eventually(async () => (await lastSaveStatus(server)) === "ok");
        await server.command("CONFIG", "SET", "save", "");
      };
    },
  },
  {
    error: "NOREPLICAS",
    strike: async (server) => {
      await server.command("CONFIG", "SET", "min-replicas-to-write", "1");
      return () => server.command("CONFIG", "SET", "min-replicas-to-write", "0");
    },
  },
  {
    error: "READONLY",
    strike: async (server) => {
      // Its master does not exist, so the server keeps its data.
      await server.command("REPLICAOF", "127.0.0.1", "1");
      return () => server.command("REPLICAOF", "NO", "ONE");
    },
  },
];

async function acquireEverywhere(locks: Locks, nodes: number): Promise<Lease> {
  await bench.warmUp(locks);
  const lease = await locks.acquire(key, { ttl, renew: false });
  await eventually(async () => !(await bench.values(key)).slice(0, nodes).includes(null));
  return lease;
}

describe.each(sicknesses)("a release answered by $error", ({ strike }) => {
  test.each([1, 3])("is sent again until it runs, on %i nodes", async (nodes) => {
    const locks = await bench.locks(nodes, { maxTtl: ttl });
    const lease = await acquireEverywhere(locks, nodes);
    const sick = bench.servers.slice(0, nodes);
    const heals = await Promise.all(sick.map((server) => strike(server)));
    let isSick = true;
    const heal = async (): Promise<void> => {
      if (isSick) for (const each of heals) await each();
      isSick = false;
    };
    onTestFinished(heal);
    expect(await lease.release()).toEqual(unconfirmed);
    await heal();
    // Long before the TTL is over.
    await bench.untilFree();
  });

  test("on one node of three leaves no key behind there", async () => {
    const locks = await bench.locks(3, { maxTtl: ttl });
    const lease = await acquireEverywhere(locks, 3);
    const healing = await strike(bench.server(1));
    let isSick = true;
    const heal = async (): Promise<void> => {
      if (isSick) await healing();
      isSick = false;
    };
    onTestFinished(heal);
    expect(await lease.release()).toEqual({ released: true });
    await heal();
    await bench.untilFree();
  });
});

const errors = [
  "BUSY Redis is busy running a script.",
  "LOADING Redis is loading the dataset in memory",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "CLUSTERDOWN Hash slot not served",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "ERR something that no version says yet",
];

test.each(errors)("a release answered by %s is sent again", async (error) => {
  const proxy = await startTcpProxy(bench.server(0).port);
  const locks = openLocks([await connect(proxy.port)], { maxTtl: ttl });
  const lease = await acquireEverywhere(locks, 1);
  proxy.refuse(textOf("release"), error);
  expect(await lease.release()).toEqual(unconfirmed);
  proxy.refuse(textOf("release"), undefined);
  await bench.untilFree();
});

test("a release that the server refuses for good is reported, and not sent again", async () => {
  const proxy = await startTcpProxy(bench.server(0).port);
  const locks = openLocks([await connect(proxy.port)], { maxTtl: ttl });
  const lease = await acquireEverywhere(locks, 1);
  const failures = collect(locks, "node-failed");
  proxy.refuse(textOf("release"), "NOPERM this user has no permissions to access one of the keys");
  expect(await lease.release()).toEqual(unconfirmed);
  expect(failures).toMatchObject([{ vote: "failed", cause: { message: /^NOPERM/ } }]);
  proxy.refuse(textOf("release"), undefined);
  const sent = proxy.countRequests(textOf("release"));
  // Releases still owed are sent before the manager is closed.
  await locks.close();
  expect(proxy.countRequests(textOf("release"))).toBe(sent);
  await bench.freeByForeigner([0], key);
});

test("one refused release does not delay the others of its server", async () => {
  const proxy = await startTcpProxy(bench.server(0).port);
  const locks = openLocks([await connect(proxy.port)], { maxTtl: ttl });
  await bench.warmUp(locks);
  const stuck = await locks.acquire("stuck", { ttl, renew: false });
  const other = await locks.acquire("other", { ttl, renew: false });
  proxy.refuse(textOf("release"), "TRYAGAIN Multiple keys request during rehashing of slot");
  expect(await stuck.release()).toEqual(unconfirmed);
  expect(await other.release()).toEqual(unconfirmed);
  proxy.refuse("\r\nstuck\r\n", "TRYAGAIN Multiple keys request during rehashing of slot");
  await eventually(async () => (await bench.server(0).command("EXISTS", "other")) === 0);
  expect(await bench.server(0).command("EXISTS", "stuck")).toBe(1);
  proxy.refuse(textOf("release"), undefined);
  await bench.untilFree();
});

/** Opens a manager whose clocks the test can advance. */
async function locksAhead(port: number, fencing: boolean) {
  const { clock } = nodeRuntime;
  let aheadMs = 0;
  const runtime: Runtime = {
    ...nodeRuntime,
    clock: {
      ...clock,
      monotonicMs: () => clock.monotonicMs() + aheadMs,
      wallMs: () => clock.wallMs() + aheadMs,
    },
  };
  const store = redlock([await connect(port)], { admission: "off", fencing, maxTtl: "90s" });
  const locks = createLocks(store, { runtime });
  onTestFinished(() => locks.close());
  return { locks, advance: (ms: number): unknown => (aheadMs += ms) };
}

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", ({ fencing }) => {
  test.each<{ resources: string | string[] }>([
    { resources: key },
    { resources: [key, "another"] },
  ])(
    "a release is owed for as long as $resources may live, not for the first TTL",
    async ({ resources }) => {
      const proxy = await startTcpProxy(bench.server(0).port);
      const { locks, advance } = await locksAhead(proxy.port, fencing);
      await bench.warmUp(locks);
      const lease = await locks.acquire(resources, { ttl: "10s", renew: false });
      await lease.extend("90s");
      await lease.extend("5s");
      proxy.refuse(textOf("release"), "LOADING Redis is loading the dataset in memory");
      expect(await lease.release()).toEqual(unconfirmed);
      // More than the TTL of the acquire, and less than the life of the keys.
      advance(20_000);
      // By then it has checked the owed releases with its new clocks.
      const refused = proxy.refusalCount;
      await eventually(() => proxy.refusalCount > refused);
      proxy.refuse(textOf("release"), undefined);
      await bench.untilFree();
    },
  );
});
