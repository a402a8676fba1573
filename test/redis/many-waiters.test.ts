import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { queueKeyOf } from "../../src/stores/redis/commands/keys.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { createLocks, type CreateLocksOptions, type Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { connect, openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";
import { queueOn, untilQueued, withoutTimers } from "./waiting-scene.ts";

const bench = shareRedis(3);
const key = "leader";

/** Opens managers that share a client, each with its own subscriber. */
function managersOn(client: Redis, count: number, defaults: CreateLocksOptions = {}): Locks[] {
  return Array.from({ length: count }, () => {
    const locks = createLocks(redis(client), { wait: "forever", ...defaults });
    onTestFinished(() => locks.close());
    return locks;
  });
}

async function waiters(): Promise<number> {
  return Number(await bench.server(0).command("ZCARD", queueKeyOf(key))) / 2;
}

/** Number of calls of each command on the first server. */
async function callsOf(...names: readonly string[]): Promise<number[]> {
  const info = String(await bench.server(0).command("INFO", "commandstats"));
  return names.map((name) => {
    return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
  });
}

test("each of 100 waiting managers is served once, in the order of arrival", async () => {
  const holder = await (await bench.locks(1)).acquire(key);
  const managers = managersOn(await connect(bench.server(0).port), 100);
  const served: number[] = [];
  const waiting: Promise<void>[] = [];
  let inside = 0;
  for (const [index, locks] of managers.entries()) {
    const call = locks.using(key, () => {
      inside += 1;
      expect(inside).toBe(1);
      served.push(index);
      inside -= 1;
    });
    waiting.push(call);
    await eventually(async () => expect(await waiters()).toBe(index + 1));
  }
  await holder.release();
  await Promise.all(waiting);
  expect(served).toEqual(managers.map((_, index) => index));
});

test("attempts of waiters with a fresh queue entry write nothing, and look up no subscriber", async () => {
  const holder = await (await bench.locks(1)).acquire(key);
  const managers = managersOn(await connect(bench.server(0).port), 3);
  const waiting = managers.map((locks) => locks.using(key, () => undefined));
  await untilQueued([bench.server(0)], key, 3);
  // The writes of the newest waiter are over once it has made another attempt.
  const [first = 0] = await callsOf("evalsha");
  await eventually(async () => expect((await callsOf("evalsha"))[0]).toBeGreaterThan(first + 3));
  const writes = ["zadd", "zrem", "pexpire", "set", "pubsub\\|numsub", "publish"];
  const before = await callsOf(...writes);
  const [asked = 0] = await callsOf("evalsha");
  await eventually(async () => expect((await callsOf("evalsha"))[0]).toBeGreaterThan(asked + 6));
  expect(await callsOf(...writes)).toEqual(before);
  await holder.release();
  await Promise.all(waiting);
});

test("a waiter behind five dead ones gets the lock of a dead holder", async () => {
  const server = bench.server(0);
  const dead = async (): Promise<Locks> => {
    // A connection that cannot subscribe, and timers that never fire.
    const deaf = [watchConnection(await connect(server.port))];
    return openLocks(deaf, {}, { wait: "forever", runtime: withoutTimers });
  };
  // No client releases this lock: it expires.
  await server.command("SET", key, "foreign", "PX", "1500");
  const ended: Promise<unknown>[] = [];
  for (let index = 0; index < 5; index += 1) {
    const locks = await dead();
    ended.push(locks.acquire(key).catch((error: unknown) => error));
    await untilQueued([server], key, index + 1);
    onTestFinished(() => locks.close());
  }
  const [last] = managersOn(await connect(server.port), 1);
  const lease = await last?.acquire(key);
  expect(lease?.state).toBe("held");
  // Each dead waiter was skipped when its time to claim was over, and none is left in the queue.
  await lease?.release();
  expect(await queueOn(server, key)).toEqual([]);
});

test("waiters whose queue is lost enter it again, and each is served", async () => {
  const servers = bench.servers;
  const holder = await (await bench.locks(3)).acquire(key);
  const managers = await Promise.all(
    Array.from({ length: 5 }, () => bench.locks(3, {}, { wait: "forever" })),
  );
  let served = 0;
  const waiting = managers.map((locks) => {
    return locks.using(key, () => {
      served += 1;
    });
  });
  await untilQueued(servers, key, 5);
  await bench.server(0).command("FLUSHALL");
  await bench.server(1).command("DEL", queueKeyOf(key));
  await untilQueued(servers.slice(1), key, 5);
  await holder.release();
  await Promise.all(waiting);
  expect(served).toBe(5);
});
