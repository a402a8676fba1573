import { afterAll, beforeAll, expect, test } from "vitest";
import {
  countsTaken,
  waysOf,
  withCountedWays,
  withoutShortWays,
} from "../../tools/simulator/short-ways.mjs";
import type { Holder } from "../../src/index.ts";
import { linesOf } from "../../src/stores/redis/commands/decode.ts";
import { encode } from "../../src/stores/redis/commands/encode.ts";
import { counterKeyOf, nodeRecordKey, shardOf } from "../../src/stores/redis/commands/keys.ts";
import {
  clusterMode,
  fencedMode,
  plainMode,
  type Mode,
} from "../../src/stores/redis/commands/modes.ts";
import { Calls } from "../../src/stores/redis/commands/operation-call.ts";
import type { NodeCall } from "../../src/stores/redis/commands/node-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { SeededRandom } from "../../src/testing/seeded-random.ts";
import { startRedisServers, type RedisServer } from "../../tools/redis/redis-server.mjs";

/**
 * Operations that share a script call must have the same results as if each was sent alone: the
 * same verdicts, keys, lives and counters. The short ways of the scripts must have the same results
 * as the engine. Three servers get the same random history: one operation by operation, one in
 * lists, and one operation by operation from scripts without short ways.
 */

let servers: RedisServer[] = [];

beforeAll(async () => {
  servers = await startRedisServers(3);
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

for (const [kind, mode] of [
  ["fenced", fencedMode(resolveStoreOptions({ admission: "off" }, 1))],
  ["fenced, strict", fencedMode(resolveStoreOptions({ admission: "strict" }, 3))],
  ["plain", plainMode],
  ["cluster", clusterMode],
] as const) {
  test(`a ${kind} list has the same results as its operations one by one, short way or not`, async () => {
    const [alone, together, slow] = servers;
    if (alone === undefined || together === undefined || slow === undefined)
      throw new Error("no servers");
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
        ? calmOperations(mode, random, await valuesOf(alone), round)
        : operations(mode, random, round);
      const single: unknown[] = [];
      for (const call of calls) single.push(call.read(await send(alone, call), false));
      const [stamp = "", ...lines] = await sendList(together, mode, calls, withCountedWays);
      const listed = calls.map((call, index) => call.readLine?.(lines[index], stamp));
      const decided: unknown[] = [];
      for (const call of calls) {
        const [at = "", line] = await sendList(slow, mode, [call], (_, text) =>
          withoutShortWays(text),
        );
        decided.push(call.readLine?.(line, at));
      }
      const context = `seed ${seed}, round ${round}`;
      expect(listed.map(normal), context).toEqual(single.map(normal));
      expect(decided.map(normal), context).toEqual(single.map(normal));
      const other = await stateOf(alone);
      for (const own of [await stateOf(together), await stateOf(slow)]) {
        expect(own.kept, context).toEqual(other.kept);
        for (const [index, ms] of own.lives.entries()) {
          const apart = Math.abs(ms - (other.lives[index] ?? NaN));
          expect(apart, `${context}, life of ${names[index]}`).toBeLessThan(toleranceMs);
        }
      }
    }
    const ways = waysOf(await together.command(...countsTaken)).get(mode.script.name);
    if (ways === undefined) throw new Error("nothing was counted");
    const usual = kind === "cluster" ? "engine" : "usual";
    expect(ways.get(usual), "lists decided the short way").toBeGreaterThan(rounds * 0.2);
    expect(ways.get("engine"), "lists decided by the engine").toBeGreaterThan(rounds * 0.2);
  });
}

test("a batch does not overwrite a key of another type, and runs its other operations", async () => {
  const [server] = servers;
  if (server === undefined) throw new Error("no server");
  for (const mode of [fencedMode(resolveStoreOptions({}, 1)), plainMode]) {
    await server.command("FLUSHALL");
    await server.command("RPUSH", "list", "something else");
    const of = new Calls(mode);
    const [, ...verdicts] = await sendList(
      server,
      mode,
      [
        of.acquire(["a", "list"], "owner-1", 20_000, 1_000),
        of.acquire(["b"], "owner-2", 20_000, 1_000),
      ],
      withCountedWays,
    );
    expect(verdicts[0]).toBe("X WRONGTYPE list list");
    expect(verdicts[1]).toMatch(/^G/);
    expect(await server.command("EXISTS", "a")).toBe(0);
    expect(await server.command("LRANGE", "list", "0", "-1")).toEqual(["something else"]);
  }
});

/**
 * Returns random operations with few owners and keys, so that they collide, also within a batch.
 */
function operations(mode: Mode, random: SeededRandom, round: number): NodeCall<unknown>[] {
  const of = new Calls(mode);
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
        return of.touch(keys, owner, pick(4) === 0 ? 0 : ttlMs, number);
      case 1:
        return of.release(keys, owner);
      default:
        return of.acquire(keys, owner, ttlMs, number);
    }
  });
}

/** Acquires free names, and touches or releases held ones with their owners. */
function calmOperations(
  mode: Mode,
  random: SeededRandom,
  values: readonly (string | null)[],
  round: number,
): NodeCall<unknown>[] {
  const of = new Calls(mode);
  const pick = pickOf(random);
  const chosen = pick(names.length);
  return names.flatMap((name, index): NodeCall<unknown>[] => {
    if (index !== chosen && random.fraction() < 0.3) return [];
    const value = values[index] ?? null;
    const ttlMs = ttls[pick(ttls.length)] ?? 0;
    const number = 1_000 + round * 3 + pick(9);
    if (value === null) return [of.acquire([name], `owner-${pick(4)}`, ttlMs, number)];
    const [owner = "", fence = "0"] = value.split("|");
    if (random.fraction() < 0.4) return [of.release([name], owner, "", Number(fence))];
    return [of.touch([name], owner, pick(6) === 0 ? 0 : ttlMs, Number(fence))];
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

/** Sends one list as EVAL, with the script changed. Returns the stamp and the verdicts. */
async function sendList(
  server: RedisServer,
  given: Mode,
  calls: readonly NodeCall<unknown>[],
  change: (name: string, source: string) => string,
): Promise<readonly string[]> {
  const operations = calls.flatMap(({ operation }) => operation ?? []);
  // Without a script of its own for releases, so that all ways are those of one script.
  const mode = { ...given, releases: undefined };
  const [name = "", source = "", ...rest] = encode(mode, operations, true, true);
  const reply = await server.command(name, change(mode.script.name, source), ...rest);
  return linesOf(reply, operations.length);
}

/** Removes run id and times, which differ between two servers, and keeps the verdict. */
function normal(reply: unknown): unknown {
  const { holder, ...rest } = reply as { holder?: Holder };
  return { ...rest, freeInMs: undefined, owner: holder?.owner, holderFence: holder?.fence };
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
  const counters = await server.command("MGET", ...names.map(counterKeyOf));
  return { kept: { values, fields, counters }, lives: lives.map(Number) };
}

function pairs(flat: unknown): [string, string][] {
  const list = Array.isArray(flat) ? flat.map(String) : [];
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] ?? ""]] : []));
}

async function admit(server: RedisServer): Promise<void> {
  const options = resolveStoreOptions({ admission: "strict" }, 3);
  await send(server, new Calls(fencedMode(options)).acquire(["x"], "no-owner", 20_000, 1));
  await server.command("HSET", nodeRecordKey, "st", "A", "ever", "1", "max", String(ttlMaxMs));
}
