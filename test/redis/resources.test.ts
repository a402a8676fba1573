import { describe, expect, test } from "vitest";
import { AcquireTimeoutError, ForeignHolderError, InvalidOptionError } from "../../src/index.ts";
import { collect, rejection, shareRedis } from "../support/redis-harness.ts";

const bench = shareRedis(3);
const key = "invoice:42";
const modes = [{ fencing: true }, { fencing: false }];

const names = {
  unicode: "rechnung:žluťoučký-kůň:發票:🔒",
  spaces: "an invoice  with spaces ",
  braces: "{account:7}:{b}}{",
  "a newline": "line one\nline two\r\n",
  "a protocol reply": "+OK\r\n$-1\r\n",
  "a thousand characters": "x".repeat(1_000),
  "wildcards and bars": "*?[a-z]|@%7C",
  "a null character": "a\u0000b",
};

describe.each(modes)("with fencing $fencing", (mode) => {
  test.each(Object.entries(names))("a lock works for a name with %s", async (_, name) => {
    const [ours, theirs] = [await bench.locks(3, mode), await bench.locks(3, mode)];
    const lease = await ours.acquire(name, { label: "first" });
    expect(lease.resources).toEqual([name]);
    await bench.valuesEverywhere(name);
    expect(await theirs.tryAcquire(name)).toBeUndefined();
    expect(await theirs.inspect(name)).toMatchObject({ state: "held", label: "first" });
    // Only this exact name: one with a different end is another lock.
    const other = await theirs.tryAcquire(`${name}x`);
    expect(other?.state).toBe("held");
    await other?.release();
    expect(await lease.prove()).toBe(true);
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
    expect(await theirs.inspect(name)).toMatchObject({ state: "free" });
    await bench.untilFree();
  });

  test("names that look alike in Unicode are different locks", async () => {
    const locks = await bench.locks(1, mode);
    const composed = await locks.tryAcquire("caf\u00e9");
    const decomposed = await locks.tryAcquire("cafe\u0301");
    expect([composed?.state, decomposed?.state]).toEqual(["held", "held"]);
    await composed?.release();
    await decomposed?.release();
  });

  test("a resource that is given twice is acquired once", async () => {
    const locks = await bench.locks(3, mode);
    const lease = await locks.acquire([key, "second", key, key]);
    expect(lease.resources).toEqual([key, "second"]);
    expect(await lease.prove()).toBe(true);
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
    await bench.untilFree();
  });

  test("several resources are acquired all or none, on each node", async () => {
    const locks = await bench.locks(3, mode);
    // On each node another resource is held.
    const resources = ["a", "b", "c"];
    for (const [index, resource] of resources.entries()) {
      await bench.holdByForeigner([index], resource);
    }
    expect(await locks.tryAcquire(resources)).toBeUndefined();
    expect(await bench.values("a")).toEqual(["foreign", null, null]);
    expect(await bench.values("b")).toEqual([null, "foreign", null]);
    expect(await bench.values("c")).toEqual([null, null, "foreign"]);
    await bench.freeByForeigner([1], "b");
    await bench.freeByForeigner([2], "c");
    // A majority has all of them; the node that lacks one grants none.
    const lease = await locks.acquire(resources, { wait: 0 });
    expect(await bench.server(0).command("EXISTS", "b", "c")).toBe(0);
    expect(await bench.server(1).command("EXISTS", ...resources)).toBe(3);
    expect(await lease.release()).toEqual({ released: true });
    await bench.freeByForeigner([0], "a");
  });

  test("a rival never sees a part of a set", async () => {
    const defaults = { wait: "60s", retry: { minDelay: 1, maxDelay: 20 } } as const;
    const locks = await bench.locks(1, mode, defaults);
    const sets = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
    ];
    const inside = new Set<string>();
    const tasks = Array.from({ length: 30 }, (_, index) => {
      const set = sets[index % 3] ?? [];
      return locks.using(set, async (lease) => {
        for (const resource of set) {
          expect(inside.has(resource)).toBe(false);
          inside.add(resource);
        }
        expect(await lease.prove()).toBe(true);
        for (const resource of set) inside.delete(resource);
      });
    });
    await Promise.all(tasks);
  });

  test("a lease can be extended and proven only while its whole set exists", async () => {
    const locks = await bench.locks(1, mode);
    const lease = await locks.acquire(["a", "b"]);
    await bench.server(0).command("DEL", "a");
    expect(await lease.prove()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: "taken" });
    await lease.release();
    await bench.untilFree();
  });

  test.each([
    ["one resource", [key]],
    ["several", ["a", key, "z"]],
  ])("a key of another type is reported at once, among %s", async (_, resources) => {
    const locks = await bench.locks(3, mode, { wait: "60s" });
    const attempts = collect(locks, "attempt");
    for (const server of bench.servers) await server.command("LPUSH", key, "not a lock");
    const error = await rejection(locks.acquire(resources));
    expect(error).toBeInstanceOf(ForeignHolderError);
    expect(error).toMatchObject({ type: "list", resources });
    expect(attempts).toHaveLength(1);
    expect(await bench.keysLeft()).toHaveLength(3);
    for (const server of bench.servers) {
      expect(await server.command("LRANGE", key, "0", "-1")).toEqual(["not a lock"]);
      await server.command("DEL", key);
    }
  });

  test("a lock is granted if only a minority has a key of another type", async () => {
    const locks = await bench.locks(3, mode);
    await bench.server(2).command("LPUSH", key, "not a lock");
    const lease = await locks.acquire(key, { wait: 0 });
    expect(await lease.release()).toEqual({ released: true });
    expect(await bench.server(2).command("TYPE", key)).toBe("list");
    await bench.server(2).command("DEL", key);
  });

  const foreignValues = [
    "G",
    "H 5 x",
    "OK",
    "a|123",
    "",
    "R 1 1",
    "null",
    "1",
    "x y z",
    "a|",
    "|7",
  ];

  test.each(foreignValues)("a foreign client's %j is respected", async (value) => {
    const locks = await bench.locks(3, mode);
    await bench.holdByForeigner([0, 1, 2], key, value);
    expect(await locks.tryAcquire(key)).toBeUndefined();
    expect(await locks.tryAcquire(["a", key])).toBeUndefined();
    const error = await rejection(locks.acquire(key, { wait: 30 }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    expect((error as AcquireTimeoutError).holder?.label).toBeUndefined();
    expect(await locks.inspect(key)).toMatchObject({ state: "held", label: undefined });
    expect(await bench.values(key)).toEqual([value, value, value]);
    expect(await bench.values("a")).toEqual([null, null, null]);
    await bench.freeByForeigner([0, 1, 2], key);
  });

  test.each(foreignValues)("a lock keeps out a foreign client that would set %j", async (value) => {
    const locks = await bench.locks(1, mode);
    const lease = await locks.acquire(key);
    const server = bench.server(0);
    expect(await server.command("SET", key, value, "NX", "PX", "60000")).toBeNull();
    expect(await lease.prove()).toBe(true);
    expect(await lease.release()).toEqual({ released: true });
    // Once the lock is free, the foreign client gets it.
    expect(await server.command("SET", key, value, "NX", "PX", "60000")).toBe("OK");
    expect(await locks.tryAcquire(key)).toBeUndefined();
    expect(await server.command("GET", key)).toBe(value);
    await server.command("DEL", key);
  });

  test("a foreign value that replaced the lock is not released or extended", async () => {
    const locks = await bench.locks(1, mode);
    const server = bench.server(0);
    const lease = await locks.acquire(key);
    await server.command("SET", key, "foreign", "PX", "60000");
    const expiresAt = await server.command("PEXPIRETIME", key);
    expect(await rejection(lease.extend())).toMatchObject({ reason: "taken" });
    expect(await lease.release()).toEqual({ released: false, reason: "taken" });
    expect(await server.command("GET", key)).toBe("foreign");
    expect(await server.command("PEXPIRETIME", key)).toBe(expiresAt);
    await server.command("DEL", key);
  });

  test("a call waits for a foreign key without an expiry", async () => {
    const locks = await bench.locks(1, mode, { wait: "30s" });
    const contended = collect(locks, "contended");
    await bench.server(0).command("SET", key, "for ever");
    const waiting = locks.acquire(key);
    while (contended.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(contended[0]?.holder?.remainingMs).toBeUndefined();
    await bench.server(0).command("DEL", key);
    await (await waiting).release();
  });
});

// A foreign value can end in a bar and a number, such as a time in nanoseconds.
test.each(["worker|1731700000000000000", "worker|9007199254740990", "a|9999999999999999999"])(
  "the number in a foreign %j is not used for fences",
  async (value) => {
    const locks = await bench.locks(1);
    const before = await locks.acquire("elsewhere");
    await before.release();
    await bench.holdByForeigner([0], key, value);
    expect(await locks.tryAcquire(key)).toBeUndefined();
    await bench.freeByForeigner([0], key);
    for (const resource of ["elsewhere", key]) {
      const lease = await locks.acquire(resource, { wait: 0 });
      expect(lease.fence - before.fence).toBeLessThan(3_600_000_000n);
      await lease.release();
    }
  },
);

test.each([
  ["an empty name", ""],
  ["an empty list", []],
  ["an empty name in a list", ["a", ""]],
  ["a lone surrogate", "a\ud800"],
  ["a name beyond the limit", "x".repeat(4_097)],
  ["too many names", Array.from({ length: 257 }, (_, index) => `r${index}`)],
  ["a number", 7],
  ["nothing", undefined],
])("the store refuses %s", async (_, resource) => {
  const locks = await bench.locks(1);
  const error = await rejection(locks.acquire(resource as never));
  expect(error).toBeInstanceOf(InvalidOptionError);
  expect(error).toMatchObject({ option: "resource" });
});

test("the node record is kept as a hash table from the first acquire on", async () => {
  const locks = await bench.locks(1, { fencing: true });
  await bench.server(0).command("DEL", "holdfast:node");
  const lease = await locks.acquire(key);
  expect(await bench.server(0).command("OBJECT", "ENCODING", "holdfast:node")).toBe("hashtable");
  await lease.release();
});
