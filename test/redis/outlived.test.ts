import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LeaseLostError, type LeaseState } from "../../src/index.ts";
import { collect, rejection, shareRedis } from "../support/redis-harness.ts";
import { shareBuild, startChildHolder } from "./child-holder.ts";

const bench = shareRedis(3);
const build = shareBuild();
const key = "invoice:42";
const ttlMs = 800;

interface Look {
  readonly from: string;
  readonly state: LeaseState;
  readonly aborted: boolean;
}

const ports = (nodes: number) => bench.servers.slice(0, nodes).map(({ port }) => port);

// Defect 11 of other libraries: the work's own result or error was lost, or masked.
describe("work that outlives its lease", () => {
  test("rejects with the loss, and carries the result", async () => {
    const locks = await bench.locks(3);
    const lost = collect(locks, "lost");
    const work = locks.using(key, { ttl: 200, renew: false }, async (lease) => {
      await new Promise((resolve) => {
        lease.signal.addEventListener("abort", resolve);
      });
      return "too late";
    });
    const error = await rejection(work);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason: "expired", result: "too late", resources: [key] });
    expect(lost).toHaveLength(1);
    await bench.untilFree();
  });

  test("rejects with the loss, and carries the work's own error as its cause", async () => {
    const locks = await bench.locks(3);
    const own = new Error("the work failed as well");
    const work = locks.using(key, { ttl: 200, renew: false }, async (lease) => {
      while (lease.state === "held") await sleep(10);
      throw own;
    });
    const error = await rejection(work);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ reason: "expired", cause: own });
    await bench.untilFree();
  });

  test("passes on the work's own error if the lease was held", async () => {
    const locks = await bench.locks(3);
    const own = new Error("the work failed");
    const work = locks.using(key, () => Promise.reject(own));
    expect(await rejection(work)).toBe(own);
    await bench.untilFree();
  });

  test("sees the loss in the first callback after this thread was blocked", async () => {
    const locks = await bench.locks(3);
    const looks: Look[] = [];
    const work = locks.using(key, { ttl: 300 }, async (lease) => {
      const look = (from: string) =>
        looks.push({ from, state: lease.state, aborted: lease.signal.aborted });
      setTimeout(() => look("timer"), 1);
      const ticked = sleep(2).then(() => look("promise of a timer"));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
      look("the work itself");
      await ticked;
      return "finished";
    });
    const error = await rejection(work);
    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ result: "finished" });
    expect(looks).toHaveLength(3);
    for (const look of looks) expect(look).toMatchObject({ state: "lost", aborted: true });
    await bench.untilFree();
  });

  test("sees the loss in another process whose event loop was busy", async () => {
    const child = await startChildHolder(build, ports(3));
    child.order({ kind: "block", resource: key, ttl: 300 });
    const { looks, error } = await child.answer<{ looks: Look[]; error: object }>();
    expect(error).toMatchObject({ name: "LeaseLostError", result: "finished" });
    expect(looks.map(({ from }) => from)).toContain("immediate");
    for (const look of looks) expect(look).toMatchObject({ state: "lost", aborted: true });
    await bench.untilFree();
  });
});

test.each([1, 3])("a process stopped on %i nodes sees its loss first when it wakes", async (n) => {
  const child = await startChildHolder(build, ports(n));
  const locks = await bench.locks(n);
  child.order({ kind: "hold", resource: key, ttl: ttlMs });
  const { fence } = await child.answer<{ fence: string }>();
  child.signal("SIGSTOP");
  // Its renewals have stopped as well: the lock expires, and we get it.
  const lease = await locks.acquire(key, { wait: "30s" });
  expect(lease.fence).toBeGreaterThan(BigInt(fence));
  // The child distinguishes a pause from an ordinary delay by its length.
  await sleep(ttlMs + 100);
  child.signal("SIGCONT");
  const { firstLook, error } = await child.answer<{ firstLook: Look; error: object }>();
  expect(firstLook).toEqual({ state: "lost", aborted: true });
  expect(error).toMatchObject({ name: "LeaseLostError", result: "finished" });
  // The child's release has found no key of its own.
  expect(await lease.prove()).toBe(true);
  expect(await lease.release()).toEqual({ released: true });
});

test.each([1, 3])("the lock of a process killed on %i nodes is free after its TTL", async (n) => {
  const child = await startChildHolder(build, ports(n));
  const locks = await bench.locks(n);
  child.order({ kind: "hold", resource: key, ttl: ttlMs });
  const { fence } = await child.answer<{ fence: string }>();
  await child.kill();
  const server = bench.server(0);
  const expiresAtMs = Number(await server.command("PEXPIRETIME", key));
  expect(await locks.tryAcquire(key)).toBeUndefined();
  const lease = await locks.acquire(key, { wait: "30s" });
  const [seconds, micros] = (await server.command("TIME")) as string[];
  expect(Number(seconds) * 1_000 + Number(micros) / 1_000).toBeGreaterThanOrEqual(expiresAtMs);
  expect(lease.fence).toBeGreaterThan(BigInt(fence));
  expect(await lease.release()).toEqual({ released: true });
});
