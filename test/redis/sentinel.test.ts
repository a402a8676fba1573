import { afterAll, beforeAll, expect, test } from "vitest";
import { watchLeaks } from "../support/leaks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks } from "../support/redis-harness.ts";
import {
  connectBySentinel,
  type RedisSentinel,
  startRedisSentinel,
} from "../support/redis-sentinel.ts";

let sentinel: RedisSentinel;

beforeAll(async () => {
  sentinel = await startRedisSentinel();
});
afterAll(() => sentinel.stop());
watchLeaks();

test("a lock is on the master that Sentinel reports, also after a failover", async () => {
  const [ours, theirs] = [
    openLocks([await connectBySentinel(sentinel)]),
    openLocks([await connectBySentinel(sentinel)]),
  ];
  const lease = await ours.acquire("invoice:42", { label: "ours" });
  expect(await theirs.tryAcquire("invoice:42")).toBeUndefined();
  expect(await sentinel.master.command("EXISTS", "invoice:42")).toBe(1);
  await lease.extend();
  expect(await lease.release()).toEqual({ released: true });
  await sentinel.failover();
  // Until it is demoted, the old master grants locks that the new one does not have.
  await eventually(async () =>
    String(await sentinel.master.command("INFO", "replication")).includes("role:slave"),
  );
  const next = await eventually(() => theirs.acquire("invoice:42", { wait: "2s" }));
  expect(await sentinel.replica.command("EXISTS", "invoice:42")).toBe(1);
  expect(next.fence).toBeGreaterThan(lease.fence);
  expect(await next.release()).toEqual({ released: true });
  expect(await sentinel.replica.command("KEYS", "invoice*")).toEqual([]);
});
