import { getEventListeners } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { ClosedError, type Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import {
  collect,
  connect,
  openLocks,
  rejection,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";
import { startTcpProxy, type WatchingProxy } from "../support/tcp-proxy.ts";

const bench = shareRedis(3);
const key = "invoice:42";
const modes = [{ fencing: true }, { fencing: false }];
/** So long that only the cancellation can end an attempt. */
const patient = { nodeTimeout: "15s" } as const;
const reason = new Error("the caller has changed its mind");

async function keyIsOn(indices: readonly number[]): Promise<boolean> {
  const values = await bench.values(key);
  return indices.every((index) => values[index] !== null);
}

/** Opens a manager whose replies from some nodes can be held back. */
async function locksBehindProxies(
  proxied: readonly number[],
  store: RedisStoreOptions,
): Promise<{ locks: Locks; proxies: WatchingProxy[] }> {
  const proxies: WatchingProxy[] = [];
  const clients = [];
  for (const [index, { port }] of bench.servers.entries()) {
    if (!proxied.includes(index)) {
      clients.push(await connect(port));
      continue;
    }
    const proxy = await startTcpProxy(port);
    proxies.push(proxy);
    clients.push(await connect(proxy.port));
  }
  const locks = openLocks(clients, store);
  await bench.warmUp(locks);
  return { locks, proxies };
}

describe.each(modes)("with fencing $fencing", (mode) => {
  // Defect 15 of other libraries: the abort also ended the clean-up, and the key stayed.
  test("a call aborted in the middle of an attempt leaves no key", async () => {
    const { locks, proxies } = await locksBehindProxies([0, 1, 2], { ...mode, ...patient });
    const controller = new AbortController();
    for (const proxy of proxies) proxy.replies = "hold";
    const attempt = locks.acquire(key, { wait: "30s", signal: controller.signal });
    await eventually(() => keyIsOn([0, 1, 2]));
    controller.abort(reason);
    const rejected = rejection(attempt);
    // The release reaches the servers, although no reply comes back.
    await bench.untilFree();
    for (const proxy of proxies) proxy.replies = "pass";
    expect(await rejected).toBe(reason);
    await bench.untilFree();
  });

  test("an aborted attempt leaves no key on a node that was frozen at the time", async () => {
    const { locks, proxies } = await locksBehindProxies([0], { ...mode, nodeTimeout: 400 });
    const controller = new AbortController();
    for (const proxy of proxies) proxy.replies = "hold";
    bench.freeze(2);
    const attempt = locks.acquire(key, { wait: "30s", signal: controller.signal });
    await eventually(async () => (await bench.server(1).command("EXISTS", key)) === 1);
    controller.abort(reason);
    expect(await rejection(attempt)).toBe(reason);
    for (const proxy of proxies) proxy.replies = "pass";
    bench.thaw(2);
    // The TTL is 20 s, so a key that is gone sooner was released.
    await bench.untilFree();
    const next = await locks.acquire(key, { wait: "10s" });
    await next.release();
  });

  test("a call aborted while it waits leaves no key", async () => {
    const [ours, theirs] = [await bench.locks(3, mode), await bench.locks(3, mode)];
    const holder = await theirs.acquire(key);
    const values = await bench.valuesEverywhere(key);
    const controller = new AbortController();
    const contended = collect(ours, "contended");
    const waiting = ours.acquire(key, {
      wait: "forever",
      retry: { minDelay: "30s", maxDelay: "30s" },
      signal: controller.signal,
    });
    // The next attempt is half a minute away, so only the abort can end the call.
    await eventually(() => contended.length > 0);
    controller.abort(reason);
    expect(await rejection(waiting)).toBe(reason);
    expect(await bench.values(key)).toEqual(values);
    await holder.release();
    await bench.untilFree();
  });

  test("fifty calls share one listener on their signal, and all end on its abort", async () => {
    const warnings: string[] = [];
    const note = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const [ours, theirs] = [await bench.locks(3, mode), await bench.locks(3, mode)];
    const holder = await theirs.acquire(key);
    const controller = new AbortController();
    const { signal } = controller;
    const contended = collect(ours, "contended");
    const waits = Array.from({ length: 50 }, (_, index) => {
      const resources = index % 2 === 0 ? key : [key, `other:${index}`];
      return rejection(ours.acquire(resources, { wait: "forever", signal }));
    });
    await eventually(() => contended.length > 25);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    controller.abort(reason);
    expect(new Set(await Promise.all(waits))).toEqual(new Set([reason]));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect(warnings).toEqual([]);
    await holder.release();
    await bench.untilFree();
  });

  test("a call whose signal was aborted before sends nothing", async () => {
    const client = await connect(bench.server(0).port);
    const connection = watchConnection(client);
    const locks = openLocks([connection], mode);
    const signal = AbortSignal.abort(reason);
    expect(await rejection(locks.acquire(key, { signal }))).toBe(reason);
    expect(await rejection(locks.using(key, { signal }, () => "never"))).toBe(reason);
    expect(connection.sent).toEqual([]);
  });

  test("a signal that aborts after the grant does not end the lease", async () => {
    const locks = await bench.locks(3, mode);
    const controller = new AbortController();
    const lease = await locks.acquire(key, { signal: controller.signal });
    controller.abort(reason);
    expect(lease.state).toBe("held");
    expect(await lease.prove()).toBe(true);
    await lease.release();
  });

  test("close ends waits, releases all leases, and makes later calls fail", async () => {
    const [ours, theirs] = [await bench.locks(3, mode), await bench.locks(3, mode)];
    const foreign = await theirs.acquire("held by others");
    const held = await ours.acquire(key);
    const kept = await ours.acquire("kept", { renew: true });
    const contended = collect(ours, "contended");
    const waits = [
      ours.acquire("held by others", { wait: "forever" }),
      ours.using("held by others", { wait: "forever" }, () => "never"),
      ours.acquire(key, { wait: "forever" }),
    ].map(rejection);
    await eventually(() => contended.length >= 3);
    const { signal } = held;
    await ours.close();
    for (const error of await Promise.all(waits)) expect(error).toBeInstanceOf(ClosedError);
    for (const lease of [held, kept]) {
      expect(lease.state).toBe("released");
      expect(lease.remainingMs()).toBe(0);
      expect(() => lease.assertHeld()).toThrow(ClosedError);
      expect(await lease.release()).toEqual({ released: true });
    }
    expect(signal.aborted).toBe(true);
    expect(await bench.values(key)).toEqual([null, null, null]);
    expect(await rejection(ours.acquire(key))).toBeInstanceOf(ClosedError);
    expect(await rejection(ours.tryAcquire(key))).toBeInstanceOf(ClosedError);
    expect(await rejection(ours.inspect(key))).toBeInstanceOf(ClosedError);
    expect(ours.close()).toBe(ours.close());
    expect(await foreign.prove()).toBe(true);
    await foreign.release();
  });

  test("close releases a grant that was still on its way", async () => {
    const { locks, proxies } = await locksBehindProxies([0, 1, 2], { ...mode, ...patient });
    for (const proxy of proxies) proxy.replies = "hold";
    const attempt = rejection(locks.acquire(key, { wait: "30s" }));
    await eventually(() => keyIsOn([0, 1, 2]));
    const closed = locks.close();
    await bench.untilFree();
    for (const proxy of proxies) proxy.replies = "pass";
    expect(await attempt).toBeInstanceOf(ClosedError);
    await closed;
    await bench.untilFree();
  });

  test("close does not hang on a frozen node, whose key is released when it thaws", async () => {
    const locks = await bench.locks(3, { ...mode, nodeTimeout: 100 });
    const lease = await locks.acquire(key);
    await eventually(() => keyIsOn([0, 1, 2]));
    bench.freeze(2);
    await locks.close();
    expect(lease.state).toBe("released");
    expect(await bench.server(0).command("EXISTS", key)).toBe(0);
    bench.thaw(2);
    await bench.untilFree();
  });
});

test("work under a closed manager sees its signal aborted, and using rejects", async () => {
  const locks = await bench.locks(3);
  const work = locks.using(key, async (lease) => {
    const aborted = new Promise((resolve) => {
      lease.signal.addEventListener("abort", resolve);
    });
    const closed = locks.close();
    await aborted;
    expect(lease.signal.reason).toBeInstanceOf(ClosedError);
    await closed;
    return "finished outside the lock";
  });
  expect(await rejection(work)).toBeInstanceOf(ClosedError);
});
