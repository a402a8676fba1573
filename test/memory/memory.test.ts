import { expect, test } from "vitest";
import { createLocks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { watchLeaks } from "../support/leaks.ts";

watchLeaks();

test("two memory stores are independent", async () => {
  const [one, other] = [createLocks(memory()), createLocks(memory())];
  expect(await one.tryAcquire("a")).toBeDefined();
  expect(await other.tryAcquire("a")).toBeDefined();
  await Promise.all([one.close(), other.close()]);
});

test("fences grow across all resources of a store", async () => {
  const locks = createLocks(memory());
  const fences: bigint[] = [];
  for (const name of ["a", "b", "a", "c", "b"]) {
    const lease = await locks.acquire(name);
    fences.push(lease.fence);
    await lease.release();
  }
  expect(new Set(fences).size).toBe(5);
  expect(fences).toEqual(fences.toSorted((one, other) => (one < other ? -1 : 1)));
  await locks.close();
});

test("an entry is free at the moment its TTL is over, and not before", async () => {
  const { runtime, clock } = manualRuntime();
  const locks = createLocks(memory(), { runtime });
  await locks.acquire("a", { ttl: 1_000 });
  await clock.advance(999);
  expect((await locks.inspect("a")).state).toBe("held");
  expect(await locks.tryAcquire("a")).toBeUndefined();
  await clock.advance(1);
  expect((await locks.inspect("a")).state).toBe("free");
  expect(await locks.tryAcquire("a")).toBeDefined();
  await locks.close();
});

test("extending a lease on several resources does not change other leases", async () => {
  const { runtime, clock } = manualRuntime();
  const locks = createLocks(memory(), { runtime, ttl: 1_000 });
  const both = await locks.acquire(["a", "b"]);
  await locks.acquire("c");
  await clock.advance(500);
  await both.extend();
  await clock.advance(600);
  expect((await locks.inspect("a")).remainingMs).toBe(400);
  expect((await locks.inspect("b")).remainingMs).toBe(400);
  expect((await locks.inspect("c")).state).toBe("free");
  await locks.close();
});

test("a TTL above maxTtl is refused, and the default TTL is lowered to it", async () => {
  const locks = createLocks(memory({ maxTtl: "2s" }));
  await expect(locks.acquire("a", { ttl: 2_001 })).rejects.toMatchObject({ option: "ttl" });
  const lease = await locks.acquire("a");
  expect(lease.remainingMs()).toBeLessThanOrEqual(2_000);
  await locks.close();
});

test.each([
  [{ maxTtl: 0 }, "maxTtl"],
  [{ maxTtl: "2d" }, "maxTtl"],
  [{ maxTTL: 5_000 }, "maxTTL"],
])("the store refuses the options %j", (options, option) => {
  expect(() => memory(options as never)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION", option }),
  );
});

test("the store is one node, which needs no admission", async () => {
  const locks = createLocks(memory());
  expect(await locks.nodes()).toMatchObject([{ node: "memory", admission: "off" }]);
  await locks.close();
});
