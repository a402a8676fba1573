import type { RedisClient } from "../../src/clients/redis-client.ts";
import { queueKeyOf } from "../../src/stores/redis/commands/keys.ts";
import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { CreateLocksOptions, Lease, Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { ioredisKinds, nodeRedisKinds, type ClientKind } from "../clients/client-kinds.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, openLocks, shareRedis } from "../support/redis-harness.ts";
import {
  listenersOf,
  loadScripts,
  scriptCalls,
  timersOnDemand,
  untilQueued,
  withoutTimers,
} from "./waiting-scene.ts";

const bench = shareRedis(5);
loadScripts(bench);
const key = "invoice:42";
const kinds = [ioredisKinds[0], nodeRedisKinds.at(-1)].flatMap((kind) => kind ?? []);

async function clientsOf(kind: ClientKind, nodes: number): Promise<RedisClient[]> {
  const servers = bench.servers.slice(0, nodes);
  const opened = await Promise.all(servers.map(({ port }) => kind.open(port)));
  onTestFinished(() => {
    for (const each of opened) each.close();
  });
  return opened.map(({ client }) => client);
}

async function managerOf(
  kind: ClientKind,
  nodes: number,
  store: RedisStoreOptions,
  defaults: CreateLocksOptions = {},
): Promise<Locks> {
  return openLocks(await clientsOf(kind, nodes), store, { wait: "forever", ...defaults });
}

/** Resolves when every node has the lock. A node without it would vote for the next client. */
async function untilHeld(nodes: number): Promise<void> {
  await eventually(async () => {
    expect((await bench.values(key)).slice(0, nodes)).not.toContain(null);
  });
}

const cases = kinds.flatMap((kind) =>
  [1, 3].flatMap((nodes) => [true, false].map((fencing) => ({ kind, nodes, fencing }))),
);

describe.each(cases)("$kind.name, $nodes nodes, fencing $fencing", ({ kind, nodes, fencing }) => {
  test("a hand-over inside a process is one command to each node, or none", async () => {
    const clients = await clientsOf(kind, nodes);
    const connections = clients.flatMap((client) => connectionOf(client) ?? []);
    // Timers never fire, because a polling attempt would be a further command.
    const runtime = withoutTimers;
    const locks = openLocks(clients, { fencing }, { wait: "forever", runtime });
    const fences: bigint[] = [];
    // A grant that arrives after the end is released once more, so each holder waits for its last
    // one.
    const work = async (lease: Lease) => {
      if (fencing) fences.push(lease.fence);
      await Promise.all(connections.map((connection) => connection.send(key, ["PING"])));
    };
    await bench.warmUp(locks);
    const holder = await locks.acquire(key);
    if (fencing) fences.push(holder.fence);
    await untilHeld(nodes);
    const tasks = [locks.using(key, work)];
    await untilQueued(bench.servers.slice(0, nodes), key, 1);
    for (let task = 1; task < 10; task += 1) tasks.push(locks.using(key, work));
    await setImmediate();
    const attempts = collect(locks, "attempt");
    const before = await scriptCalls(bench, nodes);
    await holder.release();
    await Promise.all(tasks);
    // The number of attempts depends on the length of a manager's turn. Each attempt shares a
    // command with the release before it, and the last release is sent alone.
    expect(new Set(attempts.map(({ outcome }) => outcome))).toEqual(new Set(["granted"]));
    const expected = before.map((calls) => calls + attempts.length + 1);
    await eventually(async () => expect(await scriptCalls(bench, nodes)).toEqual(expected));
    const next = await locks.acquire(key);
    if (fencing) fences.push(next.fence);
    await next.release();
    expect(fences).toEqual([...new Set(fences)].toSorted((a, b) => (a < b ? -1 : 1)));
  });

  test("a release notifies the waiter of another manager by a message", async () => {
    const ours = await managerOf(kind, nodes, { fencing });
    const theirs = await managerOf(kind, nodes, { fencing }, { runtime: withoutTimers });
    // A node that meets a manager late gets no request of an attempt that is decided without it.
    await bench.warmUp(theirs);
    for (let turn = 0; turn < 5; turn += 1) {
      const holder = await ours.acquire(key);
      await untilHeld(nodes);
      const waiting = theirs.acquire(key);
      await untilQueued(bench.servers.slice(0, nodes), key, 1);
      expect(await ours.inspect(key)).toMatchObject({ state: "held", waiters: 1 });
      await holder.release();
      await (await waiting).release();
      await bench.untilFree();
    }
  });
});

test.each([1, 5])("on %i nodes managers are served in the order of arrival", async (nodes) => {
  const ours = await bench.locks(nodes);
  const holder = await ours.acquire(key);
  await untilHeld(nodes);
  const served: number[] = [];
  const waiting: Promise<void>[] = [];
  const servers = bench.servers.slice(0, nodes);
  for (let index = 0; index < 5; index += 1) {
    const locks = await bench.locks(nodes, {}, { wait: "forever" });
    const call = locks.acquire(key).then(async (lease) => {
      served.push(index);
      await lease.release();
    });
    waiting.push(call);
    await untilQueued(servers, key, index + 1);
  }
  const queues = await untilQueued(servers, key, 5);
  const ids = queues.map((places) => places.map(({ id, ticket }) => `${ticket} ${id}`));
  for (const order of ids) expect(order).toEqual(ids[0]);
  await holder.release();
  await Promise.all(waiting);
  expect(served).toEqual([0, 1, 2, 3, 4]);
});

test("a caller that releases and acquires again is served after the earlier waiters", async () => {
  const [ours, theirs] = [await bench.locks(3), await bench.locks(3)];
  const order: string[] = [];
  const holder = await ours.acquire(key);
  const waiting = theirs.acquire(key, { wait: "forever" }).then(async (lease) => {
    order.push("theirs");
    await lease.release();
  });
  // On a quorum, because a node that was not waited for may not even have the lock.
  await eventually(async () => {
    const asked = bench.servers.slice(0, 3).map((one) => one.command("EXISTS", queueKeyOf(key)));
    return (await Promise.all(asked)).filter((found) => found === 1).length >= 2;
  });
  const released = holder.release();
  const again = await ours.acquire(key, { wait: "forever" });
  order.push("ours");
  await Promise.all([released, waiting, again.release()]);
  expect(order).toEqual(["theirs", "ours"]);
});

describe("connections for notifications", () => {
  test.each(kinds)("of $name: one to each node while there are waiters", async (kind) => {
    const servers = bench.servers.slice(0, 3);
    const counts = () => Promise.all(servers.map(listenersOf));
    const ours = await managerOf(kind, 3, {});
    const theirs = await managerOf(kind, 3, {});
    const names = ["a", "b", "c", "d"];
    const holders = await Promise.all(names.map((name) => ours.acquire(name)));
    expect(await theirs.tryAcquire("a")).toBeUndefined();
    expect(await counts()).toEqual([0, 0, 0]);
    const waiting = names.flatMap((name) => [theirs.acquire(name), theirs.acquire(name)]);
    for (const name of names) await untilQueued(servers, name, 1);
    // A waiter begins once a quorum of nodes is subscribed: the last one may come later.
    await eventually(async () => expect(await counts()).toEqual([1, 1, 1]));
    await Promise.all(holders.map((holder) => holder.release()));
    for (const call of waiting) await (await call).release();
    // Kept for a moment, and closed without a further call.
    await eventually(async () => expect(await counts()).toEqual([0, 0, 0]));
    const holder = await ours.acquire("a");
    const closed = theirs.acquire("a").catch((error: unknown) => error);
    await untilQueued(servers, "a", 1);
    await eventually(async () => expect(await counts()).toEqual([1, 1, 1]));
    await theirs.close();
    expect(await closed).toMatchObject({ code: "CLOSED" });
    await eventually(async () => expect(await counts()).toEqual([0, 0, 0]));
    await untilQueued(servers, "a", 0);
    await holder.release();
    for (const server of servers) expect(await server.command("PUBSUB", "CHANNELS")).toEqual([]);
  });

  test("that break are opened again, and the next message arrives", async () => {
    const servers = bench.servers.slice(0, 3);
    const ours = await bench.locks(3);
    const runtime = timersOnDemand();
    const theirs = await bench.locks(3, {}, { wait: "forever", runtime });
    const holder = await ours.acquire(key);
    await untilHeld(3);
    const waiting = theirs.acquire(key);
    const [[place] = []] = await untilQueued(servers, key, 1);
    const channel = `holdfast:wake:${place?.id.replace(/-w\w+$/, "")}`;
    for (const server of servers) {
      expect(await server.command("CLIENT", "KILL", "TYPE", "pubsub")).toBe(1);
    }
    await eventually(async () => {
      // The reconnect depends on timers, but its time limit is a timer as well: each try gets a
      // second before the next timers fire. Afterwards no timer fires.
      runtime.fire();
      for (const server of servers) {
        const subscribers = () => server.command("PUBSUB", "NUMSUB", channel);
        await eventually(async () => expect(await subscribers()).toEqual([channel, 1]), 1_000);
      }
    });
    await holder.release();
    await (await waiting).release();
  });

  test("may be missing: waiters poll at their intervals", async () => {
    const servers = bench.servers.slice(0, 3);
    // PUBLISH is denied, so the message is lost on every node, and nothing else fails.
    for (const server of servers) await server.command("ACL", "SETUSER", "default", "-publish");
    onTestFinished(async () => {
      for (const server of servers) await server.command("ACL", "SETUSER", "default", "+publish");
    });
    const [ours, theirs] = [await bench.locks(3), await bench.locks(3)];
    const attempts = collect(theirs, "attempt");
    const holder = await ours.acquire(key);
    const waiting = theirs.acquire(key, { wait: "forever" });
    await untilQueued(servers, key, 1);
    await holder.release();
    await (await waiting).release();
    expect(attempts.at(-1)?.outcome).toBe("granted");
  });
});

test("4 managers with 10 tasks each on 5 nodes never overlap, and each gets all its turns", async () => {
  const turns = 4;
  const managers = await Promise.all(
    [0, 1, 2, 3].map(() => bench.locks(5, {}, { wait: "forever" })),
  );
  let inside = 0;
  let insideMost = 0;
  const fences: bigint[] = [];
  const done = new Map<string, number>();
  const tasks = managers.flatMap((locks, manager) =>
    Array.from({ length: 10 }, async (_, task) => {
      for (let turn = 0; turn < turns; turn += 1) {
        await locks.using(key, async (lease) => {
          inside += 1;
          insideMost = Math.max(insideMost, inside);
          fences.push(lease.fence);
          await setImmediate();
          inside -= 1;
        });
        const name = `${manager}-${task}`;
        done.set(name, (done.get(name) ?? 0) + 1);
      }
    }),
  );
  await Promise.all(tasks);
  expect(insideMost).toBe(1);
  expect([...done.values()]).toEqual(Array.from({ length: 40 }, () => turns));
  expect(fences).toEqual(fences.toSorted((a, b) => (a < b ? -1 : 1)));
});
