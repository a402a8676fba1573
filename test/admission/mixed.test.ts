import { describe, expect, test } from "vitest";
import { AcquireTimeoutError, QuorumError, type Locks } from "../../src/index.ts";
import { collect, rejection, shareRedis } from "../support/redis-harness.ts";
import { admit, field, maxTtl, openAdmitted, openStrict } from "./strict-locks.ts";

/**
 * Clients with admission off beside strict ones, on the same nodes. A quarantine waits for the
 * leases that the strict deployment knows of. So no lease may last longer than its `maxTtl`, even
 * one of another client, and a quarantined node must not vote for any client.
 */

const redis = shareRedis(3);
const long = { admission: "off", maxTtl: "30s" } as const;

/**
 * Opens a manager with admission off, a longer `maxTtl`, and no knowledge of the strict clients.
 */
function openStray(): Promise<Locks> {
  return openStrict(redis, long, { ttl: "20s" });
}

async function refused(promise: Promise<unknown>): Promise<string> {
  const error = await rejection(promise);
  expect(error).toBeInstanceOf(QuorumError);
  return String(error);
}

describe("maxTtl of a strict node limits a client with admission off", () => {
  test.each([
    ["one lock", (locks: Locks) => [locks.acquire("a")]],
    ["several in one lock", (locks: Locks) => [locks.acquire(["a", "b"])]],
    ["several in one call", (locks: Locks) => ["a", "b", "c"].map((name) => locks.acquire(name))],
  ])("%s", async (_, calls) => {
    await openAdmitted(redis);
    const stray = await openStray();
    for (const message of await Promise.all(calls(stray).map(refused))) {
      expect(message).toContain(`above the deployment's maxTtl of ${maxTtl} ms`);
    }
    await (await stray.acquire("a", { ttl: maxTtl })).release();
  });

  test("also limits an extension, alone or together with others", async () => {
    const stray = await openStray();
    const leases = await Promise.all(["a", "b", "c"].map((name) => stray.acquire(name)));
    // Granted before the deployment became strict: they expire, or their holders release them.
    await openAdmitted(redis);
    for (const message of await Promise.all(leases.map((lease) => refused(lease.extend())))) {
      expect(message).toContain(`above the deployment's maxTtl of ${maxTtl} ms`);
    }
    const [only] = leases;
    expect(await refused(only?.extend() ?? Promise.resolve())).toContain("maxTtl");
    await Promise.all(leases.map((lease) => lease.release()));
  });
});

/** Restarts the server without the lock but with its record, as after an older snapshot. */
async function restartWithOldSnapshot(index: number): Promise<void> {
  const server = redis.server(index);
  const rid = String(await field(server, "rid"));
  await server.restart({ empty: true });
  await admit(server, 10_000);
  await server.command("HSET", "holdfast:node", "rid", rid);
}

test("a node that restarted does not vote for a client with admission off either", async () => {
  const maxTtl = 10_000;
  const strict = await openAdmitted(redis, { maxTtl }, { ttl: maxTtl });
  const lease = await strict.acquire("a");
  await redis.valuesEverywhere("a");
  // Node 3 never had the lock, and node 2 forgets it.
  await redis.server(2).command("DEL", "a");
  await restartWithOldSnapshot(1);
  const stray = await openStray();
  const error = await rejection(stray.acquire("a", { ttl: maxTtl, wait: 0 }));
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(String(error)).toMatch(/node-1: held; node-2: blank \(not admitted.*; node-3: granted/);
  expect(await field(redis.server(1), "st")).toBe("Q");
  await lease.release();
  await restartWithOldSnapshot(0);
  const later = await openStray();
  expect(await refused(later.acquire("a", { ttl: maxTtl }))).toContain("binds this client as well");
});

/** Also waits for the slowest node, which a quorum does not need. */
async function lockEverywhere(locks: Locks): Promise<void> {
  const lease = await locks.acquire("a", { ttl: maxTtl, renew: true });
  await redis.valuesEverywhere("a");
  await lease.release();
  await redis.untilFree();
}

describe("a mixture of strict clients and clients with admission off", () => {
  test("is reported to the client with admission off: a warning once per node, and findings", async () => {
    await openAdmitted(redis);
    const stray = await openStray();
    const warnings = collect(stray, "warning");
    const mixed = () => warnings.filter(({ code }) => code === "mixed-admission");
    for (let count = 0; count < 3; count += 1) await lockEverywhere(stray);
    await expect.poll(() => mixed().length).toBe(3);
    expect(new Set(mixed().map(({ node }) => node)).size).toBe(3);
    expect(mixed()[0]?.remedy).toContain('admission: "strict"');
    const findings = await stray.doctor();
    const found = findings.filter(({ code }) => code === "mixed-admission");
    expect(found.map(({ node, level }) => `${node} ${level}`)).toEqual([
      "node-1 warning",
      "node-2 warning",
      "node-3 warning",
    ]);
  });

  test("is reported to the strict clients: a warning once per node, and findings", async () => {
    const before = await openAdmitted(redis);
    expect((await before.doctor()).filter(({ code }) => code === "mixed-admission")).toEqual([]);
    const stray = await openStray();
    await lockEverywhere(stray);
    const codes = (await before.doctor()).map(({ code }) => code);
    expect(codes.filter((code) => code === "mixed-admission")).toHaveLength(3);
    const later = await openStrict(redis);
    const warnings = collect(later, "warning");
    await later.nodes();
    await later.nodes();
    const mixed = warnings.filter(({ code }) => code === "mixed-admission");
    const names = mixed.map(({ node = "" }) => node);
    expect(new Set(names)).toEqual(new Set(["node-1", "node-2", "node-3"]));
    expect(names).toHaveLength(3);
  });

  test("is not reported if all clients have admission off", async () => {
    const stray = await openStray();
    const warnings = collect(stray, "warning");
    await lockEverywhere(stray);
    expect(warnings.filter(({ code }) => code === "mixed-admission")).toEqual([]);
    expect((await stray.doctor()).map(({ code }) => code)).not.toContain("mixed-admission");
    expect(await field(redis.server(0), "off")).toBeNull();
  });
});
