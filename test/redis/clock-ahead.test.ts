import { describe, expect, onTestFinished, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import { createLocks } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { redis as redisStore } from "../../src/stores/redis/index.ts";
import { everyNodeVotes, openStrict } from "../admission/strict-locks.ts";
import { startRedisCluster } from "../support/redis-cluster.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, shareRedis } from "../support/redis-harness.ts";

/**
 * A client whose wall clock is far off. Its proposals may raise a counter at most a minute above
 * the servers' time, because fences depend on that after a total loss. The client gets a warning.
 */

const bench = shareRedis(3);
const tenYearsMs = 10 * 365 * 86_400_000;
const boundUs = 61_000_000;

/** A process whose wall clock has an adjustable offset. */
class OffClock {
  offMs: number;

  constructor(offMs: number) {
    this.offMs = offMs;
  }

  get runtime() {
    const clock = { ...nodeRuntime.clock, wallMs: () => nodeRuntime.clock.wallMs() + this.offMs };
    return { ...nodeRuntime, clock };
  }
}

async function open(clock: OffClock): Promise<Locks> {
  return await bench.locks(3, {}, { runtime: clock.runtime });
}

/** Returns the greatest of all counters and floors less the server's time, in µs. */
async function aheadUs(): Promise<number> {
  let greatest = -Infinity;
  for (const server of bench.servers) {
    const record = (await server.command("HGETALL", "holdfast:node")) as string[];
    const [seconds] = (await server.command("TIME")) as [string];
    for (let at = 0; at < record.length; at += 2) {
      if (!/^(\d+|floor)$/.test(record[at] ?? "")) continue;
      greatest = Math.max(greatest, Number(record[at + 1]) - Number(seconds) * 1_000_000);
    }
  }
  return greatest;
}

describe("a client ten years ahead", () => {
  test("raises counters by a minute at most, and fences grow for every client", async () => {
    const clock = new OffClock(tenYearsMs);
    const ahead = await open(clock);
    const honest = await open(new OffClock(0));
    let last = 0n;
    for (let turn = 0; turn < 6; turn += 1) {
      const lease = await (turn % 2 === 0 ? ahead : honest).acquire("a");
      expect(lease.fence).toBeGreaterThan(last);
      last = lease.fence;
      await lease.release();
    }
    expect(await aheadUs()).toBeLessThan(boundUs);
    expect(await aheadUs()).toBeGreaterThan(0);
  });

  test("raises counters no further in a batch, with several resources, or after a wait", async () => {
    const ahead = await open(new OffClock(tenYearsMs));
    const names = ["a", "b", "c", "d"];
    const leases = await Promise.all(names.map((name) => ahead.acquire(name)));
    const waits = names.map((name) => ahead.acquire(name, { wait: "20s" }));
    for (const lease of leases) await lease.release();
    for (const lease of await Promise.all(waits)) await lease.release();
    await (await ahead.acquire(["x", "y"])).release();
    await bench.untilFree();
    expect(await aheadUs()).toBeLessThan(boundUs);
  });

  test("proposes no future fences any more when its clock has been corrected", async () => {
    const clock = new OffClock(tenYearsMs);
    const locks = await open(clock);
    await (await locks.acquire("a")).release();
    clock.offMs = 0;
    const raised = collect(locks, "fence-raised");
    // A resource of another shard: its fence depends on the proposal alone.
    const other = await locks.acquire("other");
    expect(Number(other.fence)).toBeLessThan(Date.now() * 1_000 + boundUs);
    await bench.valuesEverywhere("other");
    await other.release();
    expect(raised).toEqual([]);
    expect(await aheadUs()).toBeLessThan(boundUs);
  });

  test("needs no second round once it knows the servers' time", async () => {
    const locks = await open(new OffClock(tenYearsMs));
    await bench.warmUp(locks);
    const raised = collect(locks, "fence-raised");
    for (let count = 0; count < 10; count += 1) await (await locks.acquire(`r${count}`)).release();
    expect(raised).toEqual([]);
  });

  test("raises floors by a minute at most if it admits servers at their first start", async () => {
    const { runtime } = new OffClock(tenYearsMs);
    const locks = await openStrict(bench, {}, { runtime });
    await everyNodeVotes(locks);
    expect(await aheadUs()).toBeLessThan(boundUs);
    expect(await aheadUs()).toBeGreaterThan(0);
    await (await locks.acquire("a")).release();
    expect(await aheadUs()).toBeLessThan(boundUs + 1_000_000);
  });

  test("raises counters by a minute at most in a Cluster", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const { Cluster } = await import("ioredis");
    const client = new Cluster([{ port: cluster.nodes[0]?.port ?? 0, host: "127.0.0.1" }]);
    onTestFinished(() => client.disconnect());
    await eventually(() => client.status === "ready");
    const { runtime } = new OffClock(tenYearsMs);
    const locks = createLocks(redisStore(client), { runtime });
    onTestFinished(() => locks.close());
    const lease = await locks.acquire("a");
    expect(Number(lease.fence)).toBeLessThan(Date.now() * 1_000 + boundUs);
    const next = locks.acquire("a", { wait: "20s" });
    await lease.release();
    expect((await next).fence).toBeGreaterThan(lease.fence);
    expect(Number((await next).fence)).toBeLessThan(Date.now() * 1_000 + boundUs);
    await (await next).release();
  });
});

describe("a warning about a clock offset", () => {
  const offsets = (locks: Locks) => {
    const warnings = collect(locks, "warning");
    return () => warnings.filter(({ code }) => code === "clock-offset");
  };

  test.each([
    [5_000, "ahead of"],
    [-5_000, "behind"],
  ])(
    "names this client, off by %d ms: once per node, with the nodes in agreement",
    async (offMs, word) => {
      const locks = await open(new OffClock(offMs));
      const found = offsets(locks);
      for (let count = 0; count < 3; count += 1) {
        const lease = await locks.acquire("a");
        await bench.valuesEverywhere("a");
        await lease.release();
        await bench.untilFree();
      }
      await expect.poll(() => found().length).toBe(3);
      expect(new Set(found().map(({ node }) => node)).size).toBe(3);
      for (const { what, level, remedy } of found()) {
        expect(level).toBe("warning");
        expect(what).toMatch(new RegExp(`this client's clock is \\d+ m?s ${word} the server's`));
        expect(what).toContain("of 3 servers agree");
        expect(remedy).toContain("on this machine");
      }
      const codes = (await locks.doctor()).map(({ code }) => code);
      expect(codes).toContain("client-clock-offset");
    },
  );

  test("names the difference only, if there is one node to compare with", async () => {
    const locks = await bench.locks(1, {}, { runtime: new OffClock(3_000).runtime });
    const found = offsets(locks);
    for (let count = 0; count < 3; count += 1) await (await locks.acquire("a")).release();
    expect(found()).toHaveLength(1);
    expect(found()[0]?.what).toContain("behind this client's");
  });

  test("is not emitted if all clocks are within a second", async () => {
    const locks = await open(new OffClock(300));
    const found = offsets(locks);
    for (let count = 0; count < 3; count += 1) await (await locks.acquire("a")).release();
    expect(found()).toEqual([]);
  });

  test("is emitted for a clock that is set while locks are held", async () => {
    const clock = new OffClock(0);
    const locks = await open(clock);
    const found = offsets(locks);
    await (await locks.acquire("a")).release();
    expect(found()).toEqual([]);
    clock.offMs = -4_000;
    await expect
      .poll(async () => {
        await (await locks.acquire("a")).release();
        return found().length;
      })
      .toBeGreaterThan(0);
  });
});
