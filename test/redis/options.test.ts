import { describe, expect, onTestFinished, test } from "vitest";
import {
  createLocks,
  InvalidOptionError,
  type Locks,
  QuorumError,
  UnsupportedError,
} from "../../src/index.ts";
import { redis, redlock } from "../../src/stores/redis/index.ts";
import {
  collect,
  connect,
  openLocks,
  rejection,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

const bench = shareRedis(3);
const key = "invoice:42";

/** Number of calls of each command on a server so far. */
async function commandCounts(server: RedisServer): Promise<Map<string, number>> {
  const stats = String(await server.command("INFO", "commandstats"));
  const counts = new Map<string, number>();
  for (const [, name = "", calls] of stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    counts.set(name, Number(calls));
  }
  return counts;
}

describe("bad input", () => {
  const lockOptions: readonly [string, object, string][] = [
    ["a ttl of 0", { ttl: 0 }, "ttl"],
    ["a negative ttl", { ttl: -1 }, "ttl"],
    ["a ttl that is not a number", { ttl: Number.NaN }, "ttl"],
    ["an endless ttl", { ttl: Infinity }, "ttl"],
    ["a fractional ttl", { ttl: 100.5 }, "ttl"],
    ["a fractional ttl in words", { ttl: "0.5ms" }, "ttl"],
    ["a ttl without its unit", { ttl: "100" }, "ttl"],
    ["a ttl below the least", { ttl: 9 }, "ttl"],
    ["a ttl above the limit", { ttl: 30_001 }, "ttl"],
    ["a ttl above the limit in words", { ttl: "31s" }, "ttl"],
    ["a negative wait", { wait: -1 }, "wait"],
    ["a wait that is no duration", { wait: "soon" }, "wait"],
    ["a renew that is no choice", { renew: "yes" }, "renew"],
    ["a maxHold of 0", { maxHold: 0 }, "maxHold"],
    ["a retry without a pause", { retry: { minDelay: 0 } }, "retry.minDelay"],
    ["a retry that shrinks", { retry: { minDelay: 50, maxDelay: 20 } }, "retry.maxDelay"],
    ["an unknown part of retry", { retry: { delay: 5 } }, "delay"],
    ["a signal that is none", { signal: {} }, "signal"],
    ["a label that is no text", { label: 7 }, "label"],
    ["a label that is too long", { label: "x".repeat(201) }, "label"],
    ["an unknown option", { tll: 100 }, "tll"],
    ["options that are a list", [], "options"],
  ];

  test.each(lockOptions)("%s is refused before anything is sent", async (_, options, option) => {
    const client = await connect(bench.server(0).port);
    const locks = openLocks([client]);
    await client.ping();
    const before = await commandCounts(bench.server(0));
    const calls = [
      locks.acquire(key, options),
      locks.using(key, options, () => "never"),
      ...("wait" in options ? [] : [locks.tryAcquire(key, options)]),
    ];
    for (const error of await Promise.all(calls.map(rejection))) {
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(error).toMatchObject({ option, code: "INVALID_OPTION" });
      const reason = /(Expected `(\S+)` to be|there is no option "(\w+)"|(ttl) \S+.* is longer)/;
      expect(reason.exec(String(error))?.slice(2)).toContain(option);
    }
    // On the same connection, so that everything sent before has been counted.
    await client.ping();
    const after = await commandCounts(bench.server(0));
    const ran = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)]);
    expect(ran.filter(([, count]) => count !== 0)).toEqual(
      expect.arrayContaining([
        ["ping", 1],
        ["info", 1],
      ]),
    );
    expect(ran.filter(([, count]) => count !== 0)).toHaveLength(2);
  });

  test("createLocks refuses the same values as defaults, and a signal among them", async () => {
    const client = await connect(bench.server(0).port);
    const store = redis(client);
    for (const [, options, option] of lockOptions) {
      if (option === "options") continue;
      const expected = expect.objectContaining({ option });
      expect(() => createLocks(store, options)).toThrow(expected);
    }
    const { signal } = new AbortController();
    expect(() => createLocks(store, { signal } as object)).toThrow(InvalidOptionError);
    for (const notOne of [undefined, null, {}, client]) {
      expect(() => createLocks(notOne as never)).toThrow(
        expect.objectContaining({ option: "store" }),
      );
    }
  });

  test.each<[string, object, string]>([
    ["a nodeTimeout of 0", { nodeTimeout: 0 }, "nodeTimeout"],
    ["a negative drift", { drift: { factor: -0.1 } }, "drift.factor"],
    ["a drift above a half", { drift: { factor: 0.6 } }, "drift.factor"],
    ["a drift that is no number", { drift: { factor: Number.NaN } }, "drift.factor"],
    ["a fractional drift", { drift: { fixed: 0.5 } }, "drift.fixed"],
    ["an unknown part of drift", { drift: { ms: 2 } }, "ms"],
    ["a prefix that is no text", { prefix: 7 }, "prefix"],
    ["a prefix that is too long", { prefix: "x".repeat(201) }, "prefix"],
    ["fencing that is no choice", { fencing: 1 }, "fencing"],
    ["an unknown admission", { admission: "lax" }, "admission"],
    ["admission without fencing", { admission: "strict", fencing: false }, "admission"],
    ["a maxTtl of 0", { maxTtl: 0 }, "maxTtl"],
    ["an unknown option", { retries: 3 }, "retries"],
    ["a quorum of one's own", { quorum: 1 }, "quorum"],
  ])("%s is refused by the store", async (_, options, option) => {
    const client = await connect(bench.server(0).port);
    expect(() => redis(client, options)).toThrow(expect.objectContaining({ option }));
    expect(() => redlock([client], options)).toThrow(expect.objectContaining({ option }));
  });

  test("values that are not clients are refused, with their position", async () => {
    const client = await connect(bench.server(0).port);
    for (const notOne of [undefined, null, {}, "redis://127.0.0.1", 6379, { get: () => null }]) {
      expect(() => redis(notOne as never)).toThrow(expect.objectContaining({ option: "client" }));
      expect(() => redlock([client, notOne as never])).toThrow(
        expect.objectContaining({ option: "nodes[1]" }),
      );
    }
    for (const none of [[], undefined, client]) {
      expect(() => redlock(none as never)).toThrow(expect.objectContaining({ option: "nodes" }));
    }
  });

  test("an extension beyond the limit is refused and changes nothing", async () => {
    const locks = await bench.locks(1);
    const lease = await locks.acquire(key);
    const before = lease.remainingMs();
    for (const ttl of [0, -5, Number.NaN, 30_001, "1h"]) {
      const error = await rejection(lease.extend(ttl as number));
      expect(error).toMatchObject({ option: "ttl" });
    }
    expect(lease.state).toBe("held");
    expect(lease.remainingMs()).toBeLessThanOrEqual(before);
    await lease.release();
  });
});

describe("options of the store", () => {
  test("a prefix is put in front of every key, and separates locks", async () => {
    const clients = await bench.connectAll(3);
    const [app, other] = [
      openLocks(clients, { prefix: "app:" }),
      await bench.locks(3, { prefix: "other:" }),
    ];
    const lease = await app.acquire([key, "second"]);
    for (const name of [`app:${key}`, "app:second"]) await bench.valuesEverywhere(name);
    expect(await bench.values(key)).toEqual([null, null, null]);
    expect(lease.resources).toEqual([key, "second"]);
    const same = await other.acquire(key, { wait: 0 });
    expect(await app.inspect(key)).toMatchObject({ resource: key, state: "held" });
    expect(await same.release()).toEqual({ released: true });
    expect(await lease.release()).toEqual({ released: true });
  });

  test("nodeTimeout limits the wait for a silent node", async () => {
    const locks = await bench.locks(3, { nodeTimeout: 70 });
    await bench.warmUp(locks);
    bench.freeze(0, 1);
    const error = await rejection(locks.acquire(key, { wait: 0 }));
    expect(error).toBeInstanceOf(QuorumError);
    const silent = (error as QuorumError).votes.filter(({ vote }) => vote === "unknown");
    expect(silent.map(({ node }) => node)).toEqual(["node-1", "node-2"]);
    for (const { cause } of silent) expect(String(cause)).toContain("no answer within 70 ms");
    bench.thaw(0, 1);
    await bench.untilFree();
  });

  test.each([
    { drift: undefined, allowanceMs: 20_000 * 0.01 + 2 },
    { drift: { factor: 0.4, fixed: 500 }, allowanceMs: 8_500 },
    { drift: { factor: 0, fixed: "3s" } as const, allowanceMs: 3_000 },
  ])("drift ($drift) is subtracted from every validity", async ({ drift, allowanceMs }) => {
    const locks = await bench.locks(1, drift === undefined ? {} : { drift });
    const lease = await locks.acquire(key, { ttl: "20s" });
    expect(lease.remainingMs()).toBeLessThanOrEqual(20_000 - allowanceMs);
    const pttl = Number(await bench.server(0).command("PTTL", key));
    expect(lease.remainingMs()).toBeLessThan(pttl);
    await lease.extend("25s");
    expect(lease.remainingMs()).toBeLessThanOrEqual(25_000 - (allowanceMs / 20_000) * 20_000);
    await lease.release();
  });

  test("with a drift that leaves nothing of the TTL no lock is granted", async () => {
    const locks = await bench.locks(1, { drift: { fixed: 500 } });
    expect(await rejection(locks.acquire(key, { ttl: 400, wait: 0 }))).toBeInstanceOf(QuorumError);
    expect(await bench.keysLeft()).toEqual([]);
  });

  test("without fencing, reading the fence throws", async () => {
    const locks = await bench.locks(3, { fencing: false });
    expect(locks.capabilities).toMatchObject({ fencing: false });
    const lease = await locks.acquire(key);
    expect(() => lease.fence).toThrow(UnsupportedError);
    await lease.release();
    const fenced = await bench.locks(3);
    expect(fenced.capabilities).toMatchObject({ fencing: true });
  });

  test("fenced and plain clients exclude each other", async () => {
    const [fenced, plain] = [await bench.locks(3), await bench.locks(3, { fencing: false })];
    for (const [one, other] of [
      [fenced, plain],
      [plain, fenced],
    ] as const) {
      const lease = await one.acquire(key, { label: "mine" });
      expect(await other.tryAcquire(key)).toBeUndefined();
      expect(await other.inspect(key)).toMatchObject({ state: "held", label: "mine" });
      expect(await lease.release()).toEqual({ released: true });
    }
  });

  test("a plain lock is one SET, and a fenced one is one script", async () => {
    for (const fencing of [true, false]) {
      const connection = watchConnection(await connect(bench.server(0).port));
      const locks = openLocks([connection], { fencing });
      await bench.warmUp(locks);
      connection.sent.splice(0);
      await (await locks.acquire(key)).release();
      const commands = connection.sent.map(([name]) => name);
      expect(commands).toEqual([fencing ? "EVALSHA" : "SET", "EVALSHA"]);
    }
  });
});

describe("a user who may not run INFO", () => {
  async function connectRestricted(count: number) {
    const clients = [];
    for (const server of bench.servers.slice(0, count)) {
      await server.command("ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-info");
      onTestFinished(async () => {
        await server.command("ACL", "DELUSER", "guest");
      });
      const options = { username: "guest", password: "pw", enableReadyCheck: false };
      clients.push(await connect(server.port, options));
    }
    return clients;
  }

  async function cycle(locks: Locks): Promise<bigint> {
    const lease = await locks.acquire(key, { wait: 0 });
    expect(await lease.prove()).toBe(true);
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
    return lease.fence;
  }

  test.each([1, 3])("can lock on %i nodes without admission, and gets a warning", async (nodes) => {
    const locks = openLocks(await connectRestricted(nodes), { admission: "off" });
    const warnings = collect(locks, "warning");
    const first = await cycle(locks);
    expect(await cycle(locks)).toBeGreaterThan(first);
    await eventually(() => warnings.length === nodes);
    for (const { what, remedy } of warnings) {
      expect(what).toContain("may not run INFO");
      expect(remedy).toContain("+info");
    }
  });

  test("gets an error with the remedy at once if admission is strict", async () => {
    const locks = openLocks(await connectRestricted(3), { admission: "strict" });
    const attempts = collect(locks, "attempt");
    const error = await rejection(locks.acquire(key, { wait: "30s" }));
    expect(error).toBeInstanceOf(QuorumError);
    expect(String(error)).toContain("may not run INFO");
    expect(String(error)).toContain("+info");
    expect(attempts).toHaveLength(1);
    expect(await bench.keysLeft()).toEqual([]);
  });
});
