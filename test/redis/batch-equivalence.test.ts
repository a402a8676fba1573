import { afterAll, beforeAll, expect, test } from "vitest";
import type { Holder } from "../../src/index.ts";
import { batchCall, firstReplyAt } from "../../src/stores/redis/batch.ts";
import type { Dialect } from "../../src/stores/redis/dialect.ts";
import { fencedDialect, nodeRecordKey } from "../../src/stores/redis/fenced-dialect.ts";
import type { NodeCall } from "../../src/stores/redis/node-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { plainDialect } from "../../src/stores/redis/plain-dialect.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { startRedisServers, type RedisServer } from "../support/redis-server.ts";

/**
 * Operations that share a script call must end as if each had been sent on its own: the same
 * verdicts, the same keys, the same counters. Two servers get the same random history, one of them
 * in batches.
 */

let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await startRedisServers(2);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

const names = ["a", "b", "c"];
const rounds = 150;

for (const [kind, dialect] of [
  ["fenced", fencedDialect(resolveStoreOptions({ admission: "off" }, 1))],
  ["fenced, strict", fencedDialect(resolveStoreOptions({ admission: "strict" }, 3))],
  ["plain", plainDialect],
] as const) {
  test(`a ${kind} batch ends as its operations one by one would`, async () => {
    const [alone, together] = servers;
    if (alone === undefined || together === undefined) throw new Error("no servers");
    for (const server of servers) {
      await server.command("FLUSHALL");
      if (kind.includes("strict")) await admit(server);
    }
    const seed = Math.trunc(Math.random() * 2 ** 31);
    const random = new SeededRandom(seed);
    for (let round = 0; round < rounds; round += 1) {
      const calls = operations(dialect, random, round);
      const single: unknown[] = [];
      for (const call of calls) single.push(call.read(await send(alone, call), false));
      const replies = await sendBatch(together, dialect, calls);
      const batched = calls.map((call, index) => call.readPart?.(replies[index]));
      const context = `seed ${seed}, round ${round}`;
      expect(batched.map(normal), context).toEqual(single.map(normal));
      expect(await stateOf(together), context).toEqual(await stateOf(alone));
    }
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
    expect(replies[0]).toBe("X WRONGTYPE");
    expect(replies[1]).toMatch(/^G/);
    expect(await server.command("EXISTS", "a")).toBe(0);
    expect(await server.command("LRANGE", "list", "0", "-1")).toEqual(["something else"]);
  }
});

/** A few owners and keys, so that they meet: also within one batch. */
function operations(dialect: Dialect, random: SeededRandom, round: number): NodeCall<unknown>[] {
  const pick = (count: number): number => Math.floor(random.fraction() * count);
  return Array.from({ length: 2 + pick(8) }, () => {
    const keys = names.filter(() => random.fraction() < 0.3).slice(0, 2);
    if (keys.length === 0) keys.push(names[pick(3)] ?? "a");
    const owner = `owner-${pick(4)}`;
    const number = 1_000 + round * 3 + pick(9);
    const ttlMs = [60_000, 50_000, 0][pick(3)] ?? 0;
    switch (pick(4)) {
      case 0:
        return dialect.touch(keys, owner, Math.min(ttlMs, 30_000), number);
      case 1:
        return dialect.release(keys, owner);
      default:
        return dialect.acquire(keys, owner, 20_000, number);
    }
  });
}

async function send(server: RedisServer, call: NodeCall<unknown>): Promise<unknown> {
  const first = await server.command(...call.first(false)).catch((error: Error) => error);
  if (!(first instanceof Error)) return first;
  const second = call.fallback(first);
  if (second === undefined) return first;
  return await server.command(...second).catch((error: Error) => error);
}

async function sendBatch(
  server: RedisServer,
  dialect: Dialect,
  calls: readonly NodeCall<unknown>[],
): Promise<unknown[]> {
  if (dialect.batching === undefined) throw new Error("this dialect has no batches");
  const parts = calls.flatMap(({ part }) => part ?? []);
  const call = batchCall(dialect.batching, parts);
  const reply = await server
    .command(...call.first(false))
    .catch(async () => await server.command(...call.whole()));
  if (!Array.isArray(reply)) throw new Error("the script did not return a list");
  return reply.slice(firstReplyAt(dialect.batching));
}

/** Two processes answered, at two moments: what is left is the verdict. */
function normal(reply: unknown): unknown {
  const { holder, ...rest } = reply as { holder?: Holder };
  const told = { ...rest, runId: undefined, freeInMs: undefined };
  return { ...told, owner: holder?.owner, holderFence: holder?.fence };
}

async function stateOf(server: RedisServer): Promise<unknown> {
  const values = await server.command("MGET", ...names);
  const lives = await Promise.all(names.map((key) => server.command("PTTL", key)));
  const record = await server.command("HGETALL", nodeRecordKey);
  const fields = Object.fromEntries(pairs(record).filter(([name]) => /^\d+$/.test(name)));
  // Lives are tens of seconds apart by construction, and read within one.
  return { values, lives: lives.map((ms) => Math.round(Number(ms) / 10_000)), fields };
}

function pairs(flat: unknown): [string, string][] {
  const list = Array.isArray(flat) ? flat.map(String) : [];
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ""]] : []));
}

async function admit(server: RedisServer): Promise<void> {
  const options = resolveStoreOptions({ admission: "strict" }, 3);
  await send(server, fencedDialect(options).acquire(["x"], "nobody", 20_000, 1));
  await server.command("HSET", nodeRecordKey, "st", "A", "ever", "1", "max", "60000");
}
