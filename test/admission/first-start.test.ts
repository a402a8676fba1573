import { describe, expect, test } from "vitest";
import { QuorumError } from "../../src/index.ts";
import { collect, dial, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";
import { startRedisServers } from "../../tools/redis/redis-server.mjs";
import { field, everyNodeVotes, maxTtl, openStrict, states } from "./strict-locks.ts";

const redis = shareRedis(3);

describe("servers that were started a moment ago", () => {
  test("refuse with the reason and the waiting time, and vote by themselves when they are old enough", async (context) => {
    const servers = await startRedisServers(3);
    context.onTestFinished(async () => {
      await Promise.all(servers.map((server) => server.stop()));
    });
    // A TTL so long that the first attempt certainly comes before the end of the quarantine.
    const clients = servers.map(({ port }) => dial(port));
    const patient = openLocks(clients, { admission: "strict", maxTtl: "1h" }, { ttl: "1s" });
    await expect.poll(() => clients.every(({ status }) => status === "ready")).toBe(true);
    const error = await rejection(patient.acquire("a", { wait: 0 }));
    if (!(error instanceof QuorumError)) throw error;
    // Two of three votes decide; the attempt may have ended before the third one arrived.
    const blankVotes = error.votes.filter(({ vote }) => vote === "blank");
    expect(blankVotes.length).toBeGreaterThanOrEqual(2);
    expect(error.votes.filter(({ vote }) => vote === "granted")).toEqual([]);
    const text = String(error);
    expect(text).toContain(
      `${blankVotes[0]?.node}: blank (not admitted: it has no record of its own`,
    );
    expect(text).toMatch(/it may vote in about 36\d\d s/);
    expect(text).toContain('admission: "off"');
    // Flushed, because its records would make the next client wait for an hour.
    await patient.close();

    await Promise.all(servers.map((server) => server.command("FLUSHALL")));
    const locks = openLocks(
      servers.map(({ port }) => dial(port)),
      { admission: "strict", maxTtl, nodeTimeout: "3s" },
      { ttl: maxTtl },
    );
    const blank = collect(locks, "node-blank");
    const quarantined = collect(locks, "node-quarantined");
    const admitted = collect(locks, "node-admitted");
    const warnings = collect(locks, "warning");
    // The servers are admitted without any action of an operator.
    await using lease = await locks.acquire("a", { wait: "30s" });
    expect(lease.fence).toBeGreaterThan(0n);
    await everyNodeVotes(locks);
    const nodes = ["node-1", "node-2", "node-3"];
    expect(blank.map(({ node }) => node).sort()).toEqual(nodes);
    expect(new Set(blank.map(({ why }) => why))).toEqual(
      new Set(["it has no record of its own (a first start, or its data is gone)"]),
    );
    expect(new Set(quarantined.map(({ node }) => node))).toEqual(new Set(nodes));
    for (const { remainingMs } of quarantined)
      expect(remainingMs).toBeLessThanOrEqual(1.2 * maxTtl);
    // All in the same mode, although they were started in different seconds.
    expect(admitted.map(({ node }) => node).sort()).toEqual(nodes);
    expect(new Set(admitted.map(({ mode }) => mode))).toEqual(new Set(["bootstrap"]));
    expect(warnings.map(({ code }) => code)).toEqual(["admission-countdown"]);
  });
});

/** Waits until the uptime of every server is long enough for a first start. */
async function untilOldEnough(): Promise<void> {
  for (const server of redis.servers) {
    await eventually(async () => {
      const info = String(await server.command("INFO", "server"));
      return Number(/uptime_in_seconds:(\d+)/.exec(info)?.[1]) >= 3;
    });
  }
}

test("servers that are old enough vote at the first call", async () => {
  await untilOldEnough();
  const locks = await openStrict(redis);
  await using lease = await locks.acquire("a", { wait: 0 });
  expect(lease.state).toBe("held");
  expect(await states(locks)).toEqual(["admitted", "admitted", "admitted"]);
  for (const node of await locks.nodes()) {
    expect(node).toMatchObject({ quarantineRemainingMs: undefined, version: expect.any(String) });
  }
});

test("several clients that start at once agree, and no node is admitted by clocks", async () => {
  await untilOldEnough();
  const many = await Promise.all(Array.from({ length: 4 }, () => openStrict(redis)));
  const warnings = many.map((locks) => collect(locks, "warning"));
  const names = many.map((_, index) => `resource-${index}`);
  const leases = await Promise.all(
    many.map((locks, index) => locks.acquire(names[index] ?? "", { wait: "30s" })),
  );
  await Promise.all(leases.map((lease) => lease.release()));
  expect(warnings.flat()).toEqual([]);
  for (const server of redis.servers) expect(await field(server, "mode")).toBe("bootstrap");
});

test("with admission off a fresh server grants without a quarantine", async () => {
  const locks = await openStrict(redis, { admission: "off" });
  await using lease = await locks.acquire("a", { wait: 0 });
  expect(lease.state).toBe("held");
  expect(await states(locks)).toEqual(["off", "off", "off"]);
});

test("a single node votes at once, because its admission is off by default", async () => {
  const [server] = redis.servers;
  if (server === undefined) throw new Error("no server");
  await using lease = await openLocks([dial(server.port)]).acquire("a", { wait: "5s" });
  expect(lease.fence).toBeGreaterThan(0n);
});
