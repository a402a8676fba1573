import { expect, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { AcquireTimeoutError, InvalidOptionError, QuorumError } from "../../src/index.ts";
import { collect, connect, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { field, maxTtl, openAdmitted, openStrict, states } from "./strict-locks.ts";

/** Refusals that waiting cannot cure: the client fails at once. */

const redis = shareRedis(3);
const patient = { wait: "40s" } as const;

async function refusedCall(promise: Promise<unknown>): Promise<QuorumError> {
  const error = await rejection(promise);
  if (error instanceof QuorumError) return error;
  throw error;
}

test("a TTL above maxTtl is refused before anything is sent", async () => {
  const locks = await openAdmitted(redis);
  const error = await rejection(locks.acquire("a", { ttl: maxTtl + 1 }));
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(String(error)).toContain("longer than this store's maxTtl, 1 s");
  const lease = await locks.acquire("a");
  await expect(lease.extend(maxTtl + 1)).rejects.toThrow(InvalidOptionError);
  await lease.release();
  const off = await openStrict(redis, { admission: "off" });
  await expect(off.acquire("a", { ttl: maxTtl + 1 })).rejects.toThrow(InvalidOptionError);
});

test("a TTL above the maxTtl in the nodes' records is refused by the nodes", async () => {
  await openAdmitted(redis);
  const locks = await openStrict(redis, { maxTtl: "5s" });
  const error = await refusedCall(locks.acquire("a", { ...patient, ttl: "2s" }));
  expect(String(error)).toContain(`above the deployment's maxTtl of ${maxTtl} ms`);
  expect(String(error)).toContain("the field `max` of the key `holdfast:node`");
  // Both clients can use TTLs up to that limit. An extension beyond it is refused as well.
  const lease = await locks.acquire("a", { ttl: maxTtl });
  const refused = await refusedCall(lease.extend("2s"));
  expect(String(refused)).toContain(`above the deployment's maxTtl of ${maxTtl} ms`);
  await lease.release();
});

test("the longest maxTtl that a node has received decides how long a quarantine lasts", async () => {
  await openAdmitted(redis);
  for (const server of redis.servers) await server.command("HSET", "holdfast:node", "max", "60000");
  await redis.server(0).command("HSET", "holdfast:node", "st", "Q", "since", "0");
  const [seconds] = (await redis.server(0).command("TIME")) as [string];
  const since = String(Number(seconds) * 1_000 - 30_000);
  await redis.server(0).command("HSET", "holdfast:node", "since", since);
  const locks = await openStrict(redis);
  const [first] = await locks.nodes();
  expect(first?.admission).toBe("quarantined");
  expect(first?.quarantineRemainingMs).toBeGreaterThan(25_000);
  expect(first?.quarantineRemainingMs).toBeLessThanOrEqual(31_000);
});

test("a node with another wire format refuses, and keeps its record unchanged", async () => {
  const locks = await openAdmitted(redis);
  for (const server of redis.servers) {
    await server.command("HSET", "holdfast:node", "fmt", "0:other");
  }
  const error = await refusedCall(locks.acquire("a", patient));
  expect(String(error)).toContain("wire format 0:other");
  for (const server of redis.servers) {
    expect(await field(server, "fmt")).toBe("0:other");
    expect(await field(server, "st")).toBe("A");
  }
});

test("one node with another wire format does not prevent a lock, like one node that is down", async () => {
  const locks = await openAdmitted(redis);
  await redis.server(0).command("HSET", "holdfast:node", "fmt", "0:other");
  await using lease = await locks.acquire("a");
  expect(lease.state).toBe("held");
});

/** Connects as a user who may run every command except INFO. */
async function connectBlind(): Promise<RedisClient[]> {
  for (const server of redis.servers) {
    await server.command("ACL", "SETUSER", "blind", "on", "nopass", "~*", "&*", "+@all", "-info");
  }
  // ioredis runs INFO as its ready check as well.
  const login = { username: "blind", password: "any", enableReadyCheck: false };
  return await Promise.all(redis.servers.map(({ port }) => connect(port, login)));
}

test("a user without INFO gets an error that says so, and every node keeps its vote", async () => {
  const trusted = await openAdmitted(redis);
  const strict = { admission: "strict", maxTtl } as const;
  const blind = openLocks(await connectBlind(), strict, { ttl: maxTtl });
  const warnings = collect(blind, "warning");
  for (const server of redis.servers) await server.command("SCRIPT", "FLUSH");
  const error = await refusedCall(blind.acquire("a", patient));
  expect(String(error)).toContain("may not run INFO");
  expect(String(error)).toContain("+info");
  expect(warnings).toContainEqual(
    expect.objectContaining({ node: "node-1", what: "this user may not run INFO" }),
  );
  // The other clients are not affected.
  for (const server of redis.servers) expect(await field(server, "st")).toBe("A");
  const lost = collect(trusted, "node-blank");
  await (await trusted.acquire("a")).release();
  expect(await states(trusted)).toEqual(["admitted", "admitted", "admitted"]);
  expect(lost).toEqual([]);
});

test("a user without INFO may lock if admission is off for all clients", async () => {
  const blind = openLocks(await connectBlind(), { admission: "off", maxTtl }, { ttl: maxTtl });
  await (await blind.acquire("b")).release();
  // Strict nodes would otherwise grant without a check of whether they restarted.
  await openAdmitted(redis);
  const error = await refusedCall(blind.acquire("b", patient));
  expect(String(error)).toContain("may not run INFO");
  for (const server of redis.servers) expect(await field(server, "st")).toBe("A");
});

test("if a quarantined server makes a wait hopeless, the error of each waiting call names it", async () => {
  const locks = await openAdmitted(redis, { maxTtl: 30_000 }, { ttl: 10_000 });
  await redis.server(0).restart({ empty: true });
  await redis.holdByForeigner([1], "a");
  const wait = 1_000;
  const calls = [locks.acquire("a", { wait }), locks.acquire("a", { wait })];
  for (const error of await Promise.all(calls.map((call) => rejection(call)))) {
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    const { votes, message } = error as AcquireTimeoutError;
    expect(votes.map(({ node, vote }) => `${node} ${vote}`)).toEqual([
      "node-1 blank",
      "node-2 held",
      "node-3 granted",
    ]);
    expect(message).toMatch(/node-1: blank \(.*\d+ s.*\); node-2: held; node-3: granted/);
  }
  await redis.freeByForeigner([1], "a");
});
