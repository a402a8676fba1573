import { describe, expect, test } from "vitest";
import type { SubscriptionListener } from "../../src/clients/contract.ts";
import type { CreateLocksOptions, Lease, Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import {
  collect,
  connect,
  openLocks,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import {
  listenersOf,
  loadScripts,
  queueOn,
  notify,
  untilQueued,
  withoutTimers,
} from "./waiting-scene.ts";

const bench = shareRedis(3);
loadScripts(bench);
const key = "invoice:42";

type Options = { readonly fencing?: boolean; readonly nodes?: number } & CreateLocksOptions;

/**
 * Opens a manager that is subscribed but never polls, so that only a message leads to an attempt.
 */
async function patient({ fencing = true, nodes = 1, ...more }: Options = {}): Promise<Locks> {
  return await bench.locks(
    nodes,
    { fencing },
    { wait: "forever", runtime: withoutTimers, ...more },
  );
}

/** Opens a manager that has a queue entry and never reacts, like a process that has died. */
async function dead({ fencing = true, nodes = 1, ...more }: Options = {}): Promise<Locks> {
  const clients = await bench.connectAll(nodes);
  // A connection that cannot subscribe, and timers that never fire.
  const deaf = clients.map((client) => watchConnection(client));
  return openLocks(deaf, { fencing }, { wait: "forever", runtime: withoutTimers, ...more });
}

async function granted(call: Promise<Lease | undefined>): Promise<Lease> {
  const lease = await call;
  if (lease === undefined) throw new Error("still held, or others wait");
  return lease;
}

/** Resolves with the result or the error of a call. */
function ended(call: Promise<unknown>): Promise<unknown> {
  return call.catch((error: unknown) => error);
}

describe.each([true, false])("with fencing %s", (fencing) => {
  test("a free lock with waiters is refused until their time to claim it is over", async () => {
    const locks = await bench.locks(1, { fencing });
    const waiter = await dead({ fencing });
    await bench.holdByForeigner([0], key);
    const waiting = ended(waiter.acquire(key));
    await untilQueued([bench.server(0)], key, 1);
    await bench.freeByForeigner([0], key);
    // Two resources, because a lock on one resource without a fence is a plain SET without a queue.
    const resources = fencing ? key : [key, "invoice:43"];
    expect(await locks.tryAcquire(resources)).toBeUndefined();
    expect(await locks.inspect(key)).toMatchObject({ state: "free" });
    const lease = await eventually(() => granted(locks.tryAcquire(resources)));
    await lease.release();
    await waiter.close();
    expect(await waiting).toMatchObject({ code: "CLOSED" });
  });

  test("repeated notifications do not prolong the queue entry of a dead first waiter", async () => {
    const waiter = await dead({ fencing });
    const locks = await bench.locks(1, { fencing });
    await bench.holdByForeigner([0], key);
    const waiting = ended(waiter.acquire(key));
    const [[place] = []] = await untilQueued([bench.server(0)], key, 1);
    await bench.freeByForeigner([0], key);
    const lapses = new Set<number>();
    // Each refusal notifies the first waiter that the lock is free.
    const resources = fencing ? key : [key, "invoice:43"];
    const lease = await eventually(async () => {
      const asked = locks.tryAcquire(resources);
      await asked;
      for (const { lapseMs } of await queueOn(bench.server(0), key)) lapses.add(lapseMs);
      return await granted(asked);
    });
    // Shortened once, from seconds to a moment, and not changed afterwards.
    expect(lapses.size).toBe(1);
    expect(Math.max(...lapses)).toBeLessThan(place?.lapseMs ?? 0);
    await lease.release();
    await waiter.close();
    await waiting;
  });

  test("a waiter that leaves while the lock is free notifies the next", async () => {
    const controller = new AbortController();
    const first = await dead({ fencing });
    const second = await patient({ fencing });
    await bench.holdByForeigner([0], key);
    const leaving = ended(first.acquire(key, { signal: controller.signal }));
    await untilQueued([bench.server(0)], key, 1);
    const waiting = second.acquire(key);
    await untilQueued([bench.server(0)], key, 2);
    // This release notifies no waiter.
    await bench.freeByForeigner([0], key);
    controller.abort(new Error("enough"));
    await (await waiting).release();
    expect(await leaving).toMatchObject({ message: "enough" });
  });

  test("an attempt that removes an expired queue entry notifies the new first waiter, and is refused", async () => {
    const first = await dead({ fencing });
    const second = await patient({ fencing });
    const passer = await bench.locks(1, { fencing });
    await bench.holdByForeigner([0], key);
    const lapsing = ended(first.acquire(key));
    await untilQueued([bench.server(0)], key, 1);
    const waiting = second.acquire(key);
    await untilQueued([bench.server(0)], key, 2);
    await bench.freeByForeigner([0], key);
    const resources = fencing ? key : [key, "invoice:43"];
    let served = false;
    const serving = waiting.then((lease) => {
      served = true;
      return lease;
    });
    // Refused because of the first waiter until its time is over, then because of the second.
    await eventually(async () => {
      expect(await passer.tryAcquire(resources)).toBeUndefined();
      return served;
    });
    await (await serving).release();
    await first.close();
    await lapsing;
  });

  test("a waiter whose subscription has ended is skipped at once", async () => {
    const server = bench.server(0);
    const [client, subscriber] = [await connect(server.port), await connect(server.port)];
    const subscribe = (channel: string, listener: SubscriptionListener) => {
      void subscriber.subscribe(channel).then(() => listener.onReady());
      return () => Promise.resolve();
    };
    const listening = { ...watchConnection(client), subscribe };
    const holder = await (await bench.locks(1, { fencing })).acquire(key);
    const dying = openLocks([listening], { fencing }, { wait: "forever", runtime: withoutTimers });
    const first = ended(dying.acquire(key));
    await untilQueued([server], key, 1);
    const second = (await patient({ fencing })).acquire(key);
    const [[head, next] = []] = await untilQueued([server], key, 2);
    expect([head?.listened, next?.listened]).toEqual([true, true]);
    subscriber.disconnect();
    await eventually(async () => (await listenersOf(server)) === 1);
    await holder.release();
    // The second waiter never polls, so it was notified, and the lock was not kept for the first.
    const lease = await second;
    expect((await queueOn(server, key)).map(({ id }) => id)).not.toContain(head?.id);
    await lease.release();
    await dying.close();
    await first;
  });

  test("a holder's release notifies the first waiter, even by the script without queues", async () => {
    const [ours, theirs] = [await bench.locks(1, { fencing }), await patient({ fencing })];
    // Acquired before there was a waiter, and released by the plain script for one lock.
    const holder = await ours.acquire(key);
    const waiting = theirs.acquire(key);
    await untilQueued([bench.server(0)], key, 1);
    await holder.release();
    await (await waiting).release();
  });
});

test("calls in a batch with others are refused as well, and the others are not", async () => {
  const waiter = await dead();
  const locks = await bench.locks(1);
  await bench.holdByForeigner([0], key);
  const waiting = ended(waiter.acquire(key));
  await untilQueued([bench.server(0)], key, 1);
  await bench.freeByForeigner([0], key);
  const calls = [locks.tryAcquire(key), locks.tryAcquire("free"), locks.tryAcquire([key, "c"])];
  const [refused, free, several] = await Promise.all(calls);
  expect([refused, free?.state, several]).toEqual([undefined, "held", undefined]);
  await free?.release();
  await waiter.close();
  await waiting;
});

test("a plain SET without a fence gets in before the waiters, as documented", async () => {
  const waiter = await dead({ fencing: false });
  const locks = await bench.locks(1, { fencing: false });
  await bench.holdByForeigner([0], key);
  const waiting = ended(waiter.acquire(key));
  await untilQueued([bench.server(0)], key, 1);
  await bench.freeByForeigner([0], key);
  const lease = await locks.tryAcquire(key);
  expect(lease?.state).toBe("held");
  await lease?.release();
  await waiter.close();
  await waiting;
});

test("a vote without a quorum does not cost the queue entry", async () => {
  const first = await patient({ nodes: 3 });
  const second = await patient({ nodes: 3 });
  const attempts = collect(first, "attempt");
  await bench.holdByForeigner([0, 1, 2], key);
  const waiting = first.acquire(key);
  const [[place] = []] = await untilQueued(bench.servers, key, 1);
  const id = place?.id ?? "";
  const behind = second.acquire(key);
  await untilQueued(bench.servers, key, 2);
  // One node would grant now, and two would not.
  await bench.freeByForeigner([2], key);
  const before = attempts.length;
  for (const server of bench.servers) await notify(server, id);
  await eventually(() => attempts.length > before);
  expect(attempts.at(-1)?.outcome).toBe("held");
  await eventually(async () => expect(await bench.server(2).command("GET", key)).toBeNull());
  for (const server of bench.servers) {
    const places = await queueOn(server, key);
    expect(places.map((each) => each.id)[0]).toBe(id);
  }
  await bench.freeByForeigner([0, 1], key);
  for (const server of bench.servers) await notify(server, id);
  await (await waiting).release();
  await (await behind).release();
});

test("a lock that expires at different moments on each node is waited for", async () => {
  const never = { minDelay: "1h", maxDelay: "1h" } as const;
  const locks = await bench.locks(3, {}, { wait: "forever", retry: never });
  const contended = collect(locks, "contended");
  // A quorum is free when the second node is; the time of the third does not matter.
  await bench.holdByForeigner([0], key);
  await bench.server(1).command("SET", key, "foreign", "PX", "700");
  const lease = await locks.acquire(key);
  const pauses = contended.map(({ retryInMs }) => retryInMs);
  expect(pauses.length).toBeGreaterThan(0);
  for (const pause of pauses) expect(pause).toBeLessThan(702);
  await lease.release();
  await bench.freeByForeigner([0], key);
});

test("an abort while the subscription begins ends the wait, and leaves no queue entry", async () => {
  const client = await connect(bench.server(0).port);
  const connection = watchConnection(client);
  let begun = 0;
  // The subscription never opens and timers never fire, so only the abort can end the call.
  connection.subscribe = () => {
    begun += 1;
    return () => Promise.resolve();
  };
  const defaults = { wait: "forever", runtime: withoutTimers } as const;
  const locks = openLocks([connection], {}, defaults);
  await bench.holdByForeigner([0], key);
  const controller = new AbortController();
  const waiting = ended(locks.acquire(key, { signal: controller.signal }));
  await eventually(() => begun > 0);
  const before = connection.sent.length;
  controller.abort(new Error("enough"));
  expect(await waiting).toMatchObject({ message: "enough" });
  expect(connection.sent.length).toBe(before);
  expect(await queueOn(bench.server(0), key)).toEqual([]);
  await bench.freeByForeigner([0], key);
});

test("ticket and queue entry stay the same for the whole wait", async () => {
  const first = await patient();
  const second = await patient();
  const attempts = collect(first, "attempt");
  await bench.holdByForeigner([0], key);
  const calls = [first.acquire(key)];
  const [[place] = []] = await untilQueued([bench.server(0)], key, 1);
  calls.push(second.acquire(key));
  await untilQueued([bench.server(0)], key, 2);
  for (let again = 0; again < 3; again += 1) {
    const before = attempts.length;
    await notify(bench.server(0), place?.id ?? "");
    await eventually(() => attempts.length > before);
    const [head] = await queueOn(bench.server(0), key);
    expect([head?.id, head?.ticket]).toEqual([place?.id, place?.ticket]);
    expect(head?.lapseMs).toBeGreaterThanOrEqual(place?.lapseMs ?? Infinity);
  }
  await bench.freeByForeigner([0], key);
  await notify(bench.server(0), place?.id ?? "");
  for (const call of calls) await (await call).release();
});

describe("several resources in one wait", () => {
  test("do not block a resource that is free, and are notified of one that is not", async () => {
    const waiter = await patient();
    const locks = await bench.locks(1);
    const a = await locks.acquire("a");
    const waiting = waiter.acquire(["a", "b"]);
    await untilQueued([bench.server(0)], "a", 1);
    const b = await locks.tryAcquire("b");
    expect(b?.state).toBe("held");
    await b?.release();
    await a.release();
    const both = await waiting;
    expect(await locks.tryAcquire("a")).toBeUndefined();
    expect(await locks.tryAcquire("b")).toBeUndefined();
    await both.release();
  });

  test("lead to an attempt for each notification, and leave the free one to others meanwhile", async () => {
    const waiter = await patient();
    const locks = await bench.locks(1);
    const attempts = collect(waiter, "attempt");
    const [a, b] = [await locks.acquire("a"), await locks.acquire("b")];
    const waiting = waiter.acquire(["a", "b"]);
    await untilQueued([bench.server(0)], "a", 1);
    await untilQueued([bench.server(0)], "b", 1);
    const before = attempts.length;
    await a.release();
    // Notified of the first, the waiter finds the second held, and blocks no other client.
    await eventually(() => attempts.length > before);
    const again = await eventually(() => granted(locks.tryAcquire("a")));
    await again.release();
    await b.release();
    await (await waiting).release();
  });
});
