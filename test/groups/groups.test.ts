import { describe, expect, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { InvalidOptionError, QuorumError, StoreError } from "../../src/index.ts";
import { redlockGroups } from "../../src/stores/redis/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, numbered, rejection, shareRedis } from "../support/redis-harness.ts";
import { clientsOf, nameOf, namesOf, openGroups } from "./group-locks.ts";

const redis = shareRedis(6);
const two = [
  [0, 1, 2],
  [3, 4, 5],
];
const ids = ["1", "2"];
const one = nameOf("1", ids);
const other = nameOf("2", ids);

/** Returns the indices of the servers that have the key. */
async function places(key: string): Promise<number[]> {
  const values = await redis.values(key);
  return values.flatMap((value, index) => (value === null ? [] : [index]));
}

test("a resource is locked in its own group only", async () => {
  const locks = await openGroups(redis, two);
  const first = await locks.acquire(one);
  const second = await locks.acquire(other);
  await eventually(async () => (await places(one)).length === 3);
  await eventually(async () => (await places(other)).length === 3);
  expect(await places(one)).toEqual([0, 1, 2]);
  expect(await places(other)).toEqual([3, 4, 5]);
  expect((await locks.inspect(other)).nodes.map(({ node }) => node)).toEqual([
    "group-2/node-1",
    "group-2/node-2",
    "group-2/node-3",
  ]);
  expect(await first.release()).toEqual({ released: true });
  expect(await second.release()).toEqual({ released: true });
});

test("clients that make the same key with different prefixes use the same group", async () => {
  const plain = await openGroups(redis, two);
  const prefixed = await openGroups(redis, two, { prefix: "name-" });
  for (const name of [...namesOf("1", ids, 5), ...namesOf("2", ids, 5)]) {
    await using lease = await plain.acquire(name);
    expect(lease.state).toBe("held");
    expect(await prefixed.tryAcquire(name.slice("name-".length))).toBeUndefined();
  }
});

test("leases of both groups that are renewed together each get their own outcome", async () => {
  const locks = await openGroups(redis, two, {}, { renew: "100ms" });
  const lost = collect(locks, "lost");
  const [a = "", b = "", one = ""] = namesOf("1", ids, 3);
  const [c = "", d = "", other = ""] = namesOf("2", ids, 3);
  const leases = await Promise.all([c, a, d, b].map((name) => locks.acquire(name)));
  const both = await locks.acquire([one, other]);
  await eventually(async () => (await places(d)).length === 3);
  for (const index of [3, 4, 5]) await redis.server(index).command("SET", d, "another");
  await eventually(() => leases[2]?.state === "lost");
  expect(lost.map(({ resources, reason }) => [resources, reason])).toEqual([[[d], "taken"]]);
  const renewed = collect(locks, "renewed");
  await eventually(() => {
    const seen = new Set(renewed.map(({ resources }) => resources.join()));
    return [a, b, c, both.resources.join()].every((names) => seen.has(names));
  });
  await redis.freeByForeigner([3, 4, 5], d);
  await Promise.all([...leases, both].map((lease) => lease.release()));
  await redis.untilFree();
});

describe("a lock on resources of both groups", () => {
  test("has one fence, can be extended and proven, and leaves no key", async () => {
    const locks = await openGroups(redis, two);
    const lease = await locks.acquire([one, other]);
    for (const name of [one, other]) {
      expect((await locks.inspect(name)).fence).toBe(lease.fence);
    }
    await lease.extend();
    expect(await lease.prove()).toBe(true);
    expect(await lease.release()).toEqual({ released: true });
    await redis.untilFree();
  });

  test.each([
    [one, other],
    [other, one],
  ])("is all or nothing: with %s held, %s is not left locked", async (held, free) => {
    const locks = await openGroups(redis, two);
    const rival = await openGroups(redis, two);
    const lease = await rival.acquire(held, { label: "rival" });
    expect(await locks.tryAcquire([one, other])).toBeUndefined();
    // The promise settles only after the partial lock has been released.
    expect(await places(free)).toEqual([]);
    await (await rival.acquire(free, { wait: 0 })).release();
    await lease.release();
    await (await locks.acquire([one, other], { wait: 0 })).release();
  });

  test("waits for rivals without a deadlock", async () => {
    const locks = await openGroups(redis, two);
    const managers = [locks, await openGroups(redis, two)];
    let inside = 0;
    let insideMost = 0;
    const works = Array.from({ length: 12 }, async (_, n) => {
      const by = managers[n % 2] ?? locks;
      // Given in either order: they are acquired in the order of the groups.
      await by.using(n % 3 ? [one, other] : [other, one], { wait: "60s" }, async () => {
        inside += 1;
        insideMost = Math.max(insideMost, inside);
        await Promise.resolve();
        inside -= 1;
      });
    });
    await Promise.all(works);
    expect(insideMost).toBe(1);
  });

  test("is lost if one of the groups has lost its part", async () => {
    const locks = await openGroups(redis, two);
    const lease = await locks.acquire([one, other]);
    await eventually(async () => (await places(other)).length === 3);
    for (const index of [3, 4, 5]) await redis.server(index).command("DEL", other);
    expect(await lease.prove()).toBe(false);
    expect(lease.state).toBe("lost");
    await lease.release();
    await redis.untilFree();
  });
});

test("fences of a resource grow, also if it is locked together with others", async () => {
  const managers = await Promise.all(ids.map(() => openGroups(redis, two)));
  const names = [...namesOf("1", ids, 2), ...namesOf("2", ids, 2)];
  const greatest = new Map<string, bigint>();
  // The counters of the second group are far ahead of every clock.
  for (const index of [3, 4, 5]) {
    await redis.server(index).command("HSET", "holdfast:node", "floor", "4000000000000000");
  }
  for (let n = 0; n < 40; n += 1) {
    const set = names.filter((_, index) => ((n * 7 + 3) >> index) & 1);
    if (set.length === 0) continue;
    const lease = await managers[n % 2]?.acquire(set);
    if (lease === undefined) throw new Error("no manager");
    for (const name of set) {
      expect(lease.fence).toBeGreaterThan(greatest.get(name) ?? 0n);
      greatest.set(name, lease.fence);
    }
    await lease.release();
  }
  expect(greatest.size).toBe(4);
});

describe("with one group down", () => {
  test("only its resources fail, for old clients and for new ones", async () => {
    const locks = await openGroups(redis, two, { nodeTimeout: "300ms" });
    await (await locks.acquire([one, other])).release();
    await redis.untilFree();
    redis.freeze(3, 4, 5);
    const failures = collect(locks, "node-failed");
    await (await locks.acquire(one, { wait: 0 })).release();
    const error = await rejection(locks.acquire(other, { wait: 0 }));
    expect(error).toBeInstanceOf(QuorumError);
    expect(String(error)).toContain("group-2/node-1");
    // A lock on resources of both groups leaves no key in the group that works.
    expect(await rejection(locks.acquire([one, other], { wait: 0 }))).toBeInstanceOf(QuorumError);
    for (const index of [0, 1, 2]) expect(await redis.server(index).command("GET", one)).toBeNull();
    expect(new Set(failures.map(({ node }) => node.split("/")[0]))).toEqual(new Set(["group-2"]));
    redis.thaw(3, 4, 5);
    await (await locks.acquire(other, { wait: "30s" })).release();
    await redis.untilFree();
  });

  test("a process that starts meanwhile can lock resources of the other group", async () => {
    await (await (await openGroups(redis, two)).acquire([one, other])).release();
    await redis.untilFree();
    for (const index of [3, 4, 5]) await redis.server(index).kill();
    const clients = await clientsOf(redis, [0, 1, 2]);
    const gone = [3, 4, 5].map(() => ({
      library: "none",
      topology: "standalone" as const,
      send: () => Promise.reject(new Error("connection refused")),
    }));
    const { createLocks } = await import("../../src/index.ts");
    const store = redlockGroups([clients, gone.map(numbered)], {
      admission: "off",
      nodeTimeout: "5s",
    });
    const locks = createLocks(store, { ttl: "20s" });
    try {
      await (await locks.acquire(one, { wait: 0 })).release();
      const error = await rejection(locks.acquire(other, { wait: 0 }));
      expect(error).toBeInstanceOf(QuorumError);
      expect(String(error)).toContain("connection refused");
      const states = (await locks.nodes()).map(({ node, admission }) => `${node} ${admission}`);
      expect(states).toContain("group-1/node-1 off");
      expect(states).toContain("group-2/node-1 unknown");
      expect((await locks.doctor()).map(({ code }) => code)).toContain("group-closed");
    } finally {
      await locks.close();
      for (const index of [3, 4, 5]) await redis.server(index).restart();
    }
  });
});

describe("redlockGroups refuses", () => {
  test("the same client twice, lists of different lengths, and options that groups do not support", async () => {
    const [a, b, c] = await clientsOf(redis, [0, 1, 2]);
    if (a === undefined || b === undefined || c === undefined) throw new Error("no client");
    const refused = (groups: readonly RedisClient[][], options: object = {}): string => {
      try {
        redlockGroups(groups, options);
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidOptionError);
        return String(error);
      }
      throw new Error("expected an error");
    };
    expect(refused([[a], [a]])).toContain("the same client twice");
    expect(refused([[a], [b]], { retired: { old: [b] } })).toContain("the same client twice");
    expect(refused([[a, b], [c]])).toContain("lists of the same length");
    expect(refused([[]])).toContain("lists of the same length");
    expect(refused([])).toContain("`groups`");
    expect(refused([[a], [{} as RedisClient]])).toContain("groups[1][0]");
    expect(refused([[a]], { fencing: false })).toContain("groups always fence");
    expect(refused([[a]], { crossSlot: "ordered" })).toContain("crossSlot");
    expect(refused([[a]], { layout: 0 })).toContain("`layout`");
    expect(refused([[a]], { ids: ["a b"] })).toContain("`ids`");
    expect(refused([[a], [b]], { ids: ["a", "a"] })).toContain("`ids`");
    expect(refused([[a]], { ids: ["a"], retired: { a: [] } })).toContain("`ids`");
    expect(refused([[a]], { groups: 2 })).toContain('no option "groups"');
    const cluster = { library: "x", topology: "cluster" as const, send: async () => null };
    expect(refused([[cluster]])).toContain("a client of one server");
  });

  test("the same server in two groups, before anything is written", async () => {
    const locks = await openGroups(redis, [
      [0, 1, 2],
      [3, 4, 0],
    ]);
    for (const name of [one, other]) {
      const error = await rejection(locks.acquire(name, { wait: "30s" }));
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(String(error)).toContain("as group-1/node-1 and group-2/node-3");
    }
    expect(await redis.server(0).command("DBSIZE")).toBe(0);
  });

  test("the same server in two groups, if the right groups are in use", async () => {
    await (await (await openGroups(redis, two)).acquire([one, other])).release();
    const locks = await openGroups(redis, [
      [0, 1, 2],
      [3, 4, 0],
    ]);
    // The second group would have a quorum without it.
    const error = await rejection(locks.acquire(other, { wait: "30s" }));
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain('group-2/node-3 was given as of group "2", but this node');
  });

  test("the same groups in another order, unless they have the same ids", async () => {
    await (await (await openGroups(redis, two)).acquire(one)).release();
    const swapped = await openGroups(redis, two.toReversed());
    const error = await rejection(swapped.acquire(one, { wait: "30s" }));
    expect(error).toBeInstanceOf(StoreError);
    expect(String(error)).toContain('belongs to group "2" of layout 1');
    const named = await openGroups(redis, two.toReversed(), { ids: ["2", "1"] });
    await (await named.acquire([one, other], { wait: 0 })).release();
  });
});
