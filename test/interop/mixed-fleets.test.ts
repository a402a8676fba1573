import { describe, expect, test } from "vitest";
import type { Lease, Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { shareRedis } from "../support/redis-harness.ts";
import type { PeerLocks } from "../../tools/peers/peer-locks.mjs";
import { peers, type Peer } from "./peers.ts";

/**
 * Holdfast and the lock libraries of npm on the same keys at the same time. They protect a counter
 * on a server that is read and written in two commands, so two holders at once lose an update.
 */
const bench = shareRedis(3);
const resource = "invoice:42";

async function count(): Promise<void> {
  const before = Number(await bench.server(0).command("GET", "counter"));
  await bench.server(0).command("SET", "counter", String(before + 1));
}

async function counted(): Promise<number> {
  const total = Number(await bench.server(0).command("GET", "counter"));
  await bench.server(0).command("DEL", "counter");
  // Both libraries resolve a release when a quorum has confirmed it.
  await bench.untilFree();
  return total;
}

async function peerLocks(peer: Peer): Promise<PeerLocks> {
  return peer.open(await bench.connectAll(peer.nodes));
}

async function managerFor(peer: Peer, options: RedisStoreOptions = {}): Promise<Locks> {
  const store = { prefix: peer.prefix, foreignGap: 20, ...options };
  return await bench.locks(peer.nodes, store, { wait: "forever", retry: { maxDelay: 50 } });
}

async function section(theirs: PeerLocks): Promise<void> {
  const held = await theirs.acquire(resource);
  await count();
  await theirs.release(held);
}

describe.each(peers)("$name on $nodes", (peer) => {
  test("and Holdfast exclude each other", async () => {
    const locks = await managerFor(peer);
    const theirs = await peerLocks(peer);
    const held = await theirs.acquire(resource);
    expect(await locks.tryAcquire(resource)).toBeUndefined();
    await theirs.release(held);
    const lease = await eventually(async () => (await locks.tryAcquire(resource)) ?? false);
    let isIn = false;
    const entering = theirs.acquire(resource).then((entered) => {
      isIn = true;
      return entered;
    });
    await bench.server(0).command("PING");
    expect([isIn, await (lease as Lease).prove()]).toEqual([false, true]);
    expect(await (lease as Lease).release()).toEqual({ released: true });
    await theirs.release(await entering);
    await bench.untilFree();
  });

  test.each([true, false])(
    "loses no update together with Holdfast, fencing %s",
    async (fencing) => {
      const sections = 20;
      const ours = Array.from({ length: 2 }, async () => {
        const locks = await managerFor(peer, { fencing });
        const tasks = Array.from({ length: 2 }, async () => {
          for (let done = 0; done < sections; done += 1) await locks.using(resource, count);
        });
        await Promise.all(tasks);
      });
      const theirs = Array.from({ length: 2 }, async () => {
        const peerOfTask = await peerLocks(peer);
        for (let done = 0; done < sections; done += 1) await section(peerOfTask);
      });
      await Promise.all([...ours, ...theirs]);
      expect(await counted()).toBe(6 * sections);
    },
  );

  test("is not locked out by a busy manager with foreignGap", async () => {
    const locks = await managerFor(peer);
    const foreignLocks = await peerLocks(peer);
    const wanted = 5;
    const turnsMax = 200;
    let theirs = 0;
    let turns = 0;
    const isOver = (): boolean => theirs >= wanted || turns >= turnsMax;
    // With different labels there is no hand-over, so each section is a turn. With three tasks, one
    // always waits when another releases.
    const busy = ["one", "two", "three"].map(async (label) => {
      while (!isOver()) {
        await locks.using(resource, { label }, count);
        turns += 1;
      }
    });
    // Never enters twice in a row: the manager is busy each time.
    const foreign = async (): Promise<void> => {
      for (let from = 0; !isOver(); from = turns) {
        await eventually(() => turns >= from + 3);
        await section(foreignLocks);
        theirs += 1;
      }
    };
    await Promise.all([...busy, foreign()]);
    expect(theirs).toBe(wanted);
    expect(await counted()).toBe(turns + theirs);
  });
});
