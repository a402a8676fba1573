import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { createLocks, type Locks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { startRedis } from "../../tools/redis/redis-server.mjs";

watchLeaks();

/** Returns the error of the work. */
async function failure(work: () => Promise<unknown>): Promise<Error> {
  try {
    await callerOf(work);
  } catch (error) {
    return error as Error;
  }
  throw new Error("the work did not fail");
}

/** The user's function whose frame a stack must have. */
async function callerOf(work: () => Promise<unknown>): Promise<unknown> {
  return await work();
}

function expectCaller(error: Error): void {
  expect(error.stack).toMatch(/^ +at (?:async )?callerOf \(.*caller-frames\.test\.ts:\d+:\d+\)$/m);
  // The message and the frames of the origin come first.
  expect(error.stack?.startsWith(`${error.name}: `)).toBe(true);
}

function locksOn(port: number): Locks {
  const client = new Redis({ port, retryStrategy: () => 50 });
  client.on("error", () => undefined);
  const locks = createLocks(redis(client), { wait: 0 });
  onTestFinished(async () => {
    await locks.close();
    client.disconnect();
  });
  return locks;
}

describe("the stack of a rejected call has the caller's frame", () => {
  test("if others hold the resource until the wait ends", async () => {
    const locks = createLocks(memory());
    const lease = await locks.acquire("r");
    expectCaller(await failure(() => locks.acquire("r", { wait: 30 })));
    expectCaller(await failure(() => locks.acquire("r", { wait: 0 })));
    expectCaller(await failure(() => locks.using("r", { wait: 0 }, () => undefined)));
    await lease.release();
    await locks.close();
  });

  test("if the manager is closed meanwhile", async () => {
    const locks = createLocks(memory());
    await locks.acquire("r");
    const failed = failure(() => locks.acquire("r"));
    await new Promise((resolve) => setTimeout(resolve, 10));
    await locks.close();
    expectCaller(await failed);
  });

  test("if the server is down", async () => {
    const locks = locksOn(await freePort());
    expectCaller(await failure(() => locks.acquire("r")));
    expectCaller(await failure(() => locks.tryAcquire("r")));
    expectCaller(await failure(() => locks.using("r", () => undefined)));
    expectCaller(await failure(() => locks.list()));
  });

  test("if a lease cannot be extended or proven", async () => {
    const server = await startRedis();
    onTestFinished(() => server.stop());
    const locks = locksOn(server.port);
    const lease = await locks.acquire("r", { ttl: "20s" });
    await server.kill();
    expectCaller(await failure(() => lease.extend()));
    expectCaller(await failure(() => lease.prove()));
  });

  test("but the reason of the user's own abort is left as it is", async () => {
    const locks = createLocks(memory());
    await locks.acquire("r");
    const reason = new Error("mine");
    const before = reason.stack;
    const controller = new AbortController();
    const failed = failure(() => locks.acquire("r", { signal: controller.signal }));
    controller.abort(reason);
    expect(await failed).toBe(reason);
    expect(reason.stack).toBe(before);
    await locks.close();
  });
});
