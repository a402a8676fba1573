import { Cluster } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Lease, type Locks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";

/**
 * Leases of different lengths. A life that was extended beyond the first TTL must stay, as the
 * keys on the servers show: if a renewal shortened it, another client could get the lock while the
 * first one still relies on it.
 */

const bench = shareRedis(3);
const longMs = 300_000;
const options = { ttl: "10s", renew: "100ms" } as const;
const store = { maxTtl: longMs } as const;
const modes = [{ fencing: true }, { fencing: false }];

/** Resolves when each lease was renewed `times` times from now on. */
async function renewedAgain(locks: Locks, leases: readonly Lease[], times = 2): Promise<void> {
  const renewed = collect(locks, "renewed");
  await eventually(() =>
    leases.every(({ resources }) => {
      const own = renewed.filter((event) => event.resources.join() === resources.join());
      return own.length >= times;
    }),
  );
}

async function mustLiveLong(servers: readonly RedisServer[], leases: readonly Lease[]) {
  for (const { resources } of leases) {
    for (const server of servers) {
      for (const key of resources) {
        // A node that was not waited for may be extended a little later.
        await eventually(async () => {
          const left = await server.command("PTTL", key);
          expect(Number(left), `what is left of ${key}`).toBeGreaterThan(longMs / 2);
        });
      }
    }
  }
  for (const lease of leases) expect(lease.remainingMs()).toBeGreaterThan(longMs / 2);
}

describe.each(modes)("with fencing $fencing", ({ fencing }) => {
  test.each([
    { what: "one lock", all: ["a"] },
    { what: "many locks, renewed together", all: ["a", "b", "c", "d"] },
    { what: "a lease of two locks", all: [["a", "b"]] },
    {
      what: "leases of several locks each, in one batch",
      all: [
        ["a", "b"],
        ["c", "d", "e"],
      ],
    },
  ])("a renewal does not shorten a longer life: $what", async ({ all }) => {
    const locks = await bench.locks(3, { ...store, fencing });
    const leases = await Promise.all(all.map((names) => locks.acquire(names, options)));
    for (const { resources } of leases) {
      for (const name of resources) await bench.valuesEverywhere(name);
    }
    await Promise.all(leases.map((lease) => lease.extend(longMs)));
    await renewedAgain(locks, leases);
    // Each extension is sent to all nodes in one turn, together with other operations.
    await Promise.all([...leases.map((lease) => lease.extend()), locks.inspect("z")]);
    await mustLiveLong(bench.servers, leases);
    await Promise.all(leases.map((lease) => lease.release()));
    await bench.untilFree();
  });

  test("an extension in a batch with acquires does not shorten a longer life", async () => {
    const locks = await bench.locks(3, { ...store, fencing });
    const lease = await locks.acquire("a", { ...options, renew: false });
    await bench.valuesEverywhere("a");
    await lease.extend(longMs);
    const [, other] = await Promise.all([lease.extend("1s"), locks.acquire("b", options)]);
    await mustLiveLong(bench.servers, [lease]);
    await Promise.all([lease.release(), other.release()]);
    await bench.untilFree();
  });

  test("renewals in a Cluster do not shorten a longer life", async () => {
    const cluster = await startRedisCluster(3);
    onTestFinished(() => cluster.stop());
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
    const client = new Cluster(nodes, { redisOptions: { disconnectTimeout: 100 } });
    client.on("error", () => undefined);
    onTestFinished(() => client.disconnect());
    await eventually(() => client.status === "ready");
    const locks = createLocks(redis(client, { ...store, fencing }));
    onTestFinished(() => locks.close());
    for (const names of [["a"], ["{a}1", "{a}2"]]) {
      const lease = await locks.acquire(names, options);
      await lease.extend(longMs);
      await renewedAgain(locks, [lease]);
      await mustLiveLong([await cluster.nodeOf(names[0] ?? "")], [lease]);
      await lease.release();
    }
  });
});
