import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  InvalidOptionError,
  type Lease,
  type Locks,
} from "../../src/index.ts";
import { redlock } from "../../src/stores/redis/index.ts";
import {
  collect,
  connect,
  openLocks,
  rejection,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";

const bench = shareRedis(5);
const key = "invoice:42";
const modes = [{ fencing: true }, { fencing: false }];

describe.each(modes)("with fencing $fencing", (mode) => {
  test("a lock is granted although a minority is held, and a release deletes only its own keys", async () => {
    const locks = await bench.locks(5, mode);
    await bench.holdByForeigner([1, 3], key);
    const lease = await locks.acquire(key, { wait: 0 });
    const values = await bench.values(key);
    expect(values.map((value) => value === "foreign")).toEqual([false, true, false, true, false]);
    expect(values).not.toContain(null);
    expect(await lease.prove()).toBe(true);
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
    expect(await bench.values(key)).toEqual([null, "foreign", null, "foreign", null]);
    await bench.freeByForeigner([1, 3], key);
  });

  test("an attempt leaves no key on the free nodes if a majority is held", async () => {
    const locks = await bench.locks(5, mode);
    await bench.holdByForeigner([0, 2, 4], key);
    expect(await locks.tryAcquire(key)).toBeUndefined();
    // The promise settles only after the minority was released.
    expect(await bench.values(key)).toEqual(["foreign", null, "foreign", null, "foreign"]);
    await bench.freeByForeigner([0, 2, 4], key);
  });

  // Defect 1 of other libraries: with two votes each the call never settled.
  test("an attempt settles on an even split of four nodes, and leaves no key", async () => {
    const locks = await bench.locks(4, mode);
    await bench.holdByForeigner([0, 1], key);
    expect(await locks.tryAcquire(key)).toBeUndefined();
    const error = await rejection(locks.acquire(key, { wait: 50 }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect(await bench.values(key)).toEqual(["foreign", "foreign", null, null, null]);
    await bench.freeByForeigner([0, 1], key);
    await (await locks.acquire(key)).release();
  });

  // Defect 3 of other libraries: keys were kept between retries, and a client's own key was
  // refused.
  test.each([
    { nodes: 3, byFirst: [0], bySecond: [1], byForeigner: [2] },
    { nodes: 4, byFirst: [0, 1], bySecond: [2, 3], byForeigner: [] },
  ])("two rivals that split $nodes nodes both succeed in the end", async (split) => {
    const { nodes, byFirst, bySecond, byForeigner } = split;
    await bench.holdByForeigner(byForeigner, key);
    // Holds back requests to the rival's nodes until both have their own.
    const bothHaveTheirs = eventually(async () => {
      const values = await bench.values(key);
      return values.slice(0, nodes).every((value) => value !== null);
    });
    const rival = async (own: readonly number[]): Promise<Locks> => {
      const clients = await bench.connectAll(nodes);
      const connections = clients.map((client, index) =>
        watchConnection(client, own.includes(index) ? undefined : bothHaveTheirs),
      );
      return openLocks(connections, { ...mode, nodeTimeout: "10s" }, { wait: "60s" });
    };
    const rivals = [await rival(byFirst), await rival(bySecond)];
    const firstOutcomes = rivals.map((locks) => {
      return new Promise((resolve) => {
        locks.on("attempt", ({ outcome }) => resolve(outcome));
      });
    });
    let inside = 0;
    let insideMost = 0;
    const works = rivals.map((locks) =>
      locks.using(key, async () => {
        inside += 1;
        insideMost = Math.max(insideMost, inside);
        await sleep(20);
        inside -= 1;
      }),
    );
    // Both find the lock held, release their votes, and try again.
    expect(await Promise.all(firstOutcomes)).toEqual(["held", "held"]);
    await bench.freeByForeigner(byForeigner, key);
    await Promise.all(works);
    expect(insideMost).toBe(1);
  });

  test("a server that is given twice among others is refused, and no key is left", async () => {
    const { port } = bench.server(0);
    const others = await bench.connectAll(4);
    const clients = [await connect(port), await connect(port), ...others.slice(1)];
    const locks = openLocks(clients, mode);
    // The other servers may decide before both connections to the same one have answered.
    const error = await eventually(async () => {
      const outcome = await locks.tryAcquire(key).catch((e: unknown) => e);
      if (outcome instanceof Error) return outcome;
      await (outcome as Lease | undefined)?.release();
      return false;
    });
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(error).toMatchObject({ option: "nodes" });
    expect(String(error)).toMatch(/the same server twice, as node-[12] and node-[12]/);
    // The call fails at once instead of waiting.
    const attempts = collect(locks, "attempt");
    expect(await rejection(locks.acquire(key, { wait: "30s" }))).toBe(error);
    expect(attempts).toHaveLength(1);
    expect(await bench.values(key)).toEqual([null, null, null, null, null]);
  });

  test("a quorum that consists of one server twice is refused at its first use", async () => {
    const { port } = bench.server(2);
    const locks = openLocks([await connect(port), await connect(port)], mode);
    const error = await rejection(locks.tryAcquire(key));
    expect(error).toBeInstanceOf(InvalidOptionError);
    expect(await bench.values(key)).toEqual([null, null, null, null, null]);
  });
});

test("the same client object given twice is refused at once", async () => {
  const client = await connect(bench.server(0).port);
  expect(() => redlock([client, client])).toThrow(InvalidOptionError);
  expect(() => redlock([client, client])).toThrow("the same client twice");
});

// Defect 12 of other libraries: a quorum of one of three was accepted.
test("a quorum below a majority cannot be requested", async () => {
  const clients = await bench.connectAll(3);
  const options: object = { quorum: 1 };
  expect(() => redlock(clients, options)).toThrow(InvalidOptionError);
});

// The other half of defect 12: all of three were required.
test.each([
  { nodes: 3, held: [0] },
  { nodes: 4, held: [0] },
  { nodes: 5, held: [0, 4] },
])("a majority of $nodes is enough", async ({ nodes, held }) => {
  const locks = await bench.locks(nodes);
  await bench.holdByForeigner(held, key);
  const lease = await locks.tryAcquire(key);
  expect(lease?.state).toBe("held");
  await lease?.release();
  await bench.freeByForeigner(held, key);
});

test.each([2, 4])("an even number of nodes (%i) works, with a warning", async (nodes) => {
  const locks = await bench.locks(nodes);
  const warnings = collect(locks, "warning");
  const lease = await locks.acquire(key);
  await lease.release();
  await eventually(() => warnings.length > 0);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ what: `${nodes} nodes` });
  expect(warnings[0]?.remedy).toContain("odd");
});

test("an odd number of nodes gives no warning", async () => {
  const locks = await bench.locks(3);
  const warnings = collect(locks, "warning");
  const lease = await locks.acquire(key);
  await lease.release();
  expect(warnings).toEqual([]);
});

test("every majority grants a fence greater than those before", async () => {
  const locks = await bench.locks(5);
  const fences: bigint[] = [];
  for (const held of [[], [0, 1], [3, 4], [1, 3], []]) {
    await bench.holdByForeigner(held, key);
    const lease = await locks.acquire(key, { wait: 0 });
    fences.push(lease.fence);
    await lease.release();
    await bench.freeByForeigner(held, key);
  }
  expect(fences).toEqual([...new Set(fences)].sort((a, b) => (a < b ? -1 : 1)));
});

test("the timeout error reports the holder's label", async () => {
  const [ours, theirs] = [await bench.locks(3), await bench.locks(3)];
  const lease = await theirs.acquire(key, { label: "night shift | Zürich" });
  const contended = collect(ours, "contended");
  const error = await rejection(ours.acquire(key, { wait: 60, retry: { maxDelay: 20 } }));
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(error).toMatchObject({ resources: [key], holder: { label: "night shift | Zürich" } });
  expect((error as AcquireTimeoutError).attempts).toBeGreaterThan(1);
  expect((error as AcquireTimeoutError).holder?.fence).toBe(lease.fence);
  expect(String(error)).toContain("night shift | Zürich");
  expect(contended[0]?.holder?.label).toBe("night shift | Zürich");
  await lease.release();
});

test("the timeout error reports the holder's label without fences, too", async () => {
  const [ours, theirs] = [
    await bench.locks(1, { fencing: false }),
    await bench.locks(1, { fencing: false }),
  ];
  const lease = await theirs.acquire(key, { label: "importer" });
  const error = await rejection(ours.acquire(key, { wait: 0 }));
  expect(error).toBeInstanceOf(AcquireTimeoutError);
  expect(error).toMatchObject({ holder: { label: "importer" } });
  await lease.release();
});
