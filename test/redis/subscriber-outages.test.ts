import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, type Locks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { allKinds, type ClientKind } from "../clients/client-kinds.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, openLocks, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import {
  listenersOf,
  loadScripts,
  timersOnDemand,
  untilQueued,
  withoutTimers,
} from "./waiting-scene.ts";

const bench = shareRedis(1);
loadScripts(bench);
const key = "invoice:42";
const nodeTimeoutMs = 100;

async function clientOf(kind: ClientKind, port: number): Promise<RedisClient> {
  const opened = await kind.open(port);
  onTestFinished(async () => {
    await opened.close();
  });
  return opened.client;
}

/** Resolves with the result or the error of a promise. */
function ended(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch((error: unknown) => error);
}

/** Acquires a lock that no manager under test waits for itself. */
async function holder(name: string): Promise<{ release(): Promise<unknown> }> {
  return await (await bench.locks(1)).acquire(name);
}

/** Number of refused SUBSCRIBE commands on the server. */
async function refusals(server: RedisServer): Promise<number> {
  const info = String(await server.command("INFO", "commandstats"));
  return Number(/cmdstat_subscribe:.*rejected_calls=(\d+)/.exec(info)?.[1] ?? 0);
}

function noWakeUps(locks: Locks) {
  const warnings = collect(locks, "warning");
  return () => warnings.filter(({ code }) => code === "no-wake-ups");
}

describe.each(allKinds)("$name", (kind) => {
  test("a subscription that is never answered costs one wait, shared by all waiters", async () => {
    const server = bench.server(0);
    const proxy = await startTcpProxy(server.port);
    const client = await clientOf(kind, proxy.port);
    const runtime = timersOnDemand();
    const locks = openLocks([client], { nodeTimeout: nodeTimeoutMs }, { runtime, wait: "forever" });
    await bench.warmUp(locks);
    proxy.mutesNew = true;
    const before = proxy.connectionCount;
    const held = await Promise.all(["a", "b", "c", "d"].map(holder));
    // Two waiters share the wait, which ends with the timeout of the first.
    const waiting = [ended(locks.acquire("a")), ended(locks.acquire("b"))];
    await eventually(() => proxy.connectionCount > before);
    await sleep(nodeTimeoutMs + 10);
    runtime.fire();
    await untilQueued([server], "a", 1);
    await untilQueued([server], "b", 1);
    // Later waiters do not wait for it: no timer fires for them.
    waiting.push(ended(locks.acquire("c")));
    await untilQueued([server], "c", 1);
    waiting.push(ended(locks.acquire("d")));
    await untilQueued([server], "d", 1);
    expect(proxy.connectionCount).toBe(before + 1);
    await locks.close();
    await Promise.all(waiting);
    await Promise.all(held.map((lease) => lease.release()));
  });

  test("a denied subscription is repeated now and then, with a single warning", async () => {
    const server = bench.server(0);
    await server.command("ACL", "SETUSER", "default", "resetchannels");
    const allow = () => server.command("ACL", "SETUSER", "default", "allchannels");
    onTestFinished(async () => {
      await allow();
    });
    const locks = openLocks([await clientOf(kind, server.port)], {}, { wait: "forever" });
    const warnings = noWakeUps(locks);
    await bench.warmUp(locks);
    const names = Array.from({ length: 30 }, (_, index) => `resource-${index}`);
    const held = await Promise.all(names.map(holder));
    const before = await refusals(server);
    const waiting = [];
    for (const name of names) {
      waiting.push(locks.acquire(name));
      await untilQueued([server], name, 1);
    }
    await eventually(() => warnings().length > 0);
    expect((await refusals(server)) - before).toBeLessThan(names.length / 2);
    await Promise.all(held.map((lease) => lease.release()));
    for (const call of waiting) await (await call).release();
    expect(warnings()).toHaveLength(1);
    expect(warnings()[0]).toMatchObject({
      level: "warning",
      node: "redis",
      remedy: kind.showsState ? "ACL SETUSER <user> +subscribe &holdfast:*" : expect.any(String),
    });
    // Once it is allowed, a waiter is notified again.
    await allow();
    const last = await holder(key);
    const call = locks.acquire(key, { wait: "forever" });
    await eventually(async () => expect(await listenersOf(server)).toBe(1), 40_000);
    await last.release();
    await (await call).release();
  });

  test("of two managers on one store, one that closes leaves the other its notifications", async () => {
    const server = bench.server(0);
    const store = redis(await clientOf(kind, server.port), { admission: "off" });
    const options = { wait: "forever", ttl: "20s", runtime: withoutTimers } as const;
    const [first, second] = [createLocks(store, options), createLocks(store, options)];
    onTestFinished(() => second.close());
    const [own, other] = [await holder("own"), await holder(key)];
    const ending = ended(first.acquire("own"));
    const waiting = second.acquire(key);
    await untilQueued([server], "own", 1);
    await untilQueued([server], key, 1);
    await first.close();
    await ending;
    // Its timers never fire, so only a notification explains the grant.
    await other.release();
    await (await waiting).release();
    await own.release();
  });
});
