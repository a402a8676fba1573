import { afterAll, beforeAll, expect, test } from "vitest";
import { countsTaken, waysOf, withCountedWays } from "../../tools/simulator/short-ways.mjs";
import type { Holder } from "../../src/index.ts";
import { batchCall, firstReplyAt } from "../../src/stores/redis/batch.ts";
import type { Dialect } from "../../src/stores/redis/dialect.ts";
import { fencedDialect, nodeRecordKey } from "../../src/stores/redis/fenced-dialect.ts";
import type { NodeCall } from "../../src/stores/redis/node-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { plainDialect } from "../../src/stores/redis/plain-dialect.ts";
import { shardOf } from "../../src/stores/redis/commands/shards.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { startRedisServers, type RedisServer } from "../support/redis-server.ts";

/**
 * Operations that share a script call must have the same results as if each was sent alone: the
 * same verdicts, keys, lives and counters. Two servers get the same random history, one of them in
 * batches.
 */

let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await startRedisServers(2);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** Some names share a counter: two of them in one batch must not get the same fence. */
const names = ["a", "b", "c", "d", ...sharingShardWith("a", 2), ...sharingShardWith("b", 1)];
const rounds = 150;
/** Far apart, so that the remaining lives of two TTLs differ more than the servers' times do. */
const ttls = [60_000, 90_000, 120_000, 150_000];
const toleranceMs = 14_000;
const ttlMaxMs = 150_000;

for (const [kind, dialect] of [
  ["fenced", fencedDialect(resolveStoreOptions({ admission: "off" }, 1))],
  ["fenced, strict", fencedDialect(resolveStoreOptions({ admission: "strict" }, 3))],
  ["plain", plainDialect],
] as const) {
  test(`a ${kind} batch has the same results as its operations one by one`, async () => {
    const [alone, together] = servers;
    if (alone === undefined || together === undefined) throw new Error("no servers");
    for (const server of servers) {
      await server.command("FLUSHALL");
      if (kind.includes("strict")) await admit(server);
    }
    const seed = Math.trunc(Math.random() * 2 ** 31);
    const random = new SeededRandom(seed);
    await together.command(...countsTaken);
    for (let round = 0; round < rounds; round += 1) {
      const isCalm = random.fraction() < 0.5;
      const calls: readonly NodeCall<unknown>[] = isCalm
        ? calmOperations(dialect, random, await valuesOf(alone), round)
        : operations(dialect, random, round);
      const single: unknown[] = [];
      for (const call of calls) single.push(call.read(await send(alone, call), false));
      const replies = await sendBatch(together, dialect, calls);
      const batched = calls.map((call, index) => call.readPart?.(replies[index]));
      const context = `seed ${seed}, round ${round}`;
      expect(batched.map(normal), context).toEqual(single.map(normal));
      const [own, other] = [await stateOf(together), await stateOf(alone)];
      expect(own.kept, context).toEqual(other.kept);
      for (const [index, ms] of own.lives.entries()) {
        const apart = Math.abs(ms - (other.lives[index] ?? NaN));
        expect(apart, `${context}, life of ${names[index]}`).toBeLessThan(toleranceMs);
      }
    }
    const ways = waysOf(await together.command(...countsTaken)).get(batchName(dialect));
    if (ways === undefined) throw new Error("nothing was counted");
    expect(ways.short + ways.long).toBe(rounds);
    expect(ways.short, "batches decided the short way").toBeGreaterThan(rounds * 0.2);
    expect(ways.long, "batches decided the long way").toBeGreaterThan(rounds * 0.2);
  });
}

test("a batch does not overwrite a key of another type, and runs its other operations", async () => {
  const [server] = servers;
  if (server === undefined) throw new Error("no server");
  for (const dialect of [fencedDialect(resolveStoreOptions({}, 1)), plainDialect]) {
    await server.command("FLUSHALL");
    await server.command("RPUSH", "list", "something else");
    const replies = await sendBatch(server, dialect, [
      dialect.acquire(["a", "list"], "owner-1", 20_000, 1_000),
      dialect.acquire(["b"], "owner-2", 20_000, 1_000),
    ]);
    expect(replies[0]).toBe("X WRONGTYPE list list");
    expect(replies[1]).toMatch(/^G/);
    expect(await server.command("EXISTS", "a")).toBe(0);
    expect(await server.command("LRANGE", "list", "0", "-1")).toEqual(["something else"]);
  }
});

/**
 * Returns random operations with few owners and keys, so that they collide, also within a batch.
 */
function operations(dialect: Dialect, random: SeededRandom, round: number): NodeCall<unknown>[] {
  const pick = pickOf(random);
  return Array.from({ length: 2 + pick(8) }, () => {
    const keys = names.filter(() => random.fraction() < 0.2).slice(0, 3);
    if (keys.length === 0) keys.push(names[pick(names.length)] ?? "a");
    const owner = `owner-${pick(4)}`;
    const number = 1_000 + round * 3 + pick(9);
    // One TTL is longer than a strict node allows.
    const ttlMs = [...ttls, 300_000][pick(ttls.length + 1)] ?? 0;
    switch (pick(4)) {
      case 0:
        return dialect.touch(keys, owner, pick(4) === 0 ? 0 : ttlMs, number);
      case 1:
        return dialect.release(keys, owner);
      default:
        return dialect.acquire(keys, owner, ttlMs, number);
    }
  });
}

/** Acquires free names, and touches or releases held ones with their owners. */
function calmOperations(
  dialect: Dialect,
  random: SeededRandom,
  values: readonly (string | null)[],
  round: number,
): NodeCall<unknown>[] {
  const pick = pickOf(random);
  const chosen = pick(names.length);
  return names.flatMap((name, index): NodeCall<unknown>[] => {
    if (index !== chosen && random.fraction() < 0.3) return [];
    const value = values[index] ?? null;
    const ttlMs = ttls[pick(ttls.length)] ?? 0;
    const number = 1_000 + round * 3 + pick(9);
    if (value === null) return [dialect.acquire([name], `owner-${pick(4)}`, ttlMs, number)];
    const [owner = "", fence = "0"] = value.split("|");
    if (random.fraction() < 0.4) return [dialect.release([name], owner, "", Number(fence))];
    return [dialect.touch([name], owner, pick(6) === 0 ? 0 : ttlMs, Number(fence))];
  });
}

function pickOf(random: SeededRandom): (count: number) => number {
  return (count) => Math.floor(random.fraction() * count);
}

/** Returns the first names that share their counter with `name`. */
function sharingShardWith(name: string, count: number): string[] {
  const found: string[] = [];
  for (let n = 0; found.length < count; n += 1) {
    if (shardOf(`${name}${n}`) === shardOf(name)) found.push(`${name}${n}`);
  }
  return found;
}

async function send(server: RedisServer, call: NodeCall<unknown>): Promise<unknown> {
  const first = await server.command(...call.first(false)).catch((error: Error) => error);
  if (!(first instanceof Error)) return first;
  const second = call.fallback(first);
  if (second === undefined) return first;
  return await server.command(...second).catch((error: Error) => error);
}

function batchName({ fencing }: Dialect): string {
  return fencing ? "batch" : "plain-batch";
}

/** Sends one batch as EVAL with counters for the short and the long way. */
async function sendBatch(
  server: RedisServer,
  dialect: Dialect,
  calls: readonly NodeCall<unknown>[],
): Promise<unknown[]> {
  if (dialect.batching === undefined) throw new Error("this dialect has no batches");
  const parts = calls.flatMap(({ part }) => part ?? []);
  const [name = "", source = "", ...rest] = batchCall(dialect.batching, parts).whole();
  const reply = await server.command(name, withCountedWays(batchName(dialect), source), ...rest);
  if (!Array.isArray(reply)) throw new Error("the script did not return a list");
  return reply.slice(firstReplyAt(dialect.batching));
}

/** Removes run id and times, which differ between two servers, and keeps the verdict. */
function normal(reply: unknown): unknown {
  const { holder, ...rest } = reply as { holder?: Holder };
  const comparable = { ...rest, runId: undefined, freeInMs: undefined };
  return { ...comparable, owner: holder?.owner, holderFence: holder?.fence };
}

async function valuesOf(server: RedisServer): Promise<(string | null)[]> {
  const values = await server.command("MGET", ...names);
  return values as (string | null)[];
}

async function stateOf(server: RedisServer) {
  const values = await valuesOf(server);
  const lives = await Promise.all(names.map((key) => server.command("PTTL", key)));
  const record = await server.command("HGETALL", nodeRecordKey);
  const fields = Object.fromEntries(pairs(record).filter(([name]) => /^\d+$/.test(name)));
  return { kept: { values, fields }, lives: lives.map(Number) };
}

function pairs(flat: unknown): [string, string][] {
  const list = Array.isArray(flat) ? flat.map(String) : [];
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ""]] : []));
}

async function admit(server: RedisServer): Promise<void> {
  const options = resolveStoreOptions({ admission: "strict" }, 3);
  await send(server, fencedDialect(options).acquire(["x"], "nobody", 20_000, 1));
  await server.command("HSET", nodeRecordKey, "st", "A", "ever", "1", "max", String(ttlMaxMs));
}
