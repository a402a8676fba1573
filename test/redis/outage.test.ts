import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { AcquireTimeoutError, QuorumError } from "../../src/index.ts";
import { NotConnectedError, type RedisConnection } from "../../src/stores/redis/index.ts";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import { operationsIn } from "../support/sent-operations.ts";
import {
  collect,
  connect,
  dial,
  openLocks,
  type RedisBench,
  rejection,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";
import { freePort } from "../../tools/network/free-port.mjs";
import { startRedis } from "../../tools/redis/redis-server.mjs";

const bench = shareRedis(5);
const key = "invoice:42";
const modes = [{ fencing: true }, { fencing: false }];
/** So long that waiting once for a silent node would be noticed. */
const patient = { nodeTimeout: "60s" } as const;

/** Kills some servers; each is started again, empty, when the test is over. */
async function kill(...indices: readonly number[]): Promise<void> {
  for (const index of indices) {
    const server = bench.server(index);
    await server.kill();
    onTestFinished(() => server.restart());
  }
}

async function connectWatched(from: RedisBench, count: number) {
  const clients = await from.connectAll(count);
  return clients.map((client) => watchConnection(client));
}

describe.each(modes)("with fencing $fencing", (mode) => {
  // Defect 4 of other libraries: they waited for a frozen node, for seconds or for ever.
  test.each([
    { nodes: 3, frozen: [1], met: "after" },
    { nodes: 3, frozen: [1], met: "before" },
    { nodes: 5, frozen: [0, 4], met: "after" },
    { nodes: 5, frozen: [0, 4], met: "before" },
  ])(
    "a call is decided without $frozen of $nodes nodes, which froze $met the first contact",
    async ({ nodes, frozen, met }) => {
      const connections = await connectWatched(bench, nodes);
      const locks = openLocks(connections, { ...mode, ...patient });
      const failures = collect(locks, "node-failed");
      if (met === "after") await bench.warmUp(locks);
      bench.freeze(...frozen);
      const unanswered = () => frozen.map((index) => (connections[index]?.unanswered ?? 0) > 0);

      const lease = await locks.acquire(key);
      expect(unanswered()).toEqual(frozen.map(() => true));
      expect(lease.state).toBe("held");
      await lease.extend();
      expect(await lease.prove()).toBe(true);
      expect(await lease.release()).toEqual({ released: true });
      // The call settled while the replies are still due, and no timeout had ended them.
      expect(unanswered()).toEqual(frozen.map(() => true));
      expect(failures).toEqual([]);
      bench.thaw(...frozen);
      await eventually(() => connections.every(({ unanswered: left }) => left === 0));
      await bench.untilFree();
    },
  );

  test("a held lock is reported without waiting for a frozen node", async () => {
    const connections = await connectWatched(bench, 3);
    const locks = openLocks(connections, { ...mode, ...patient });
    const failures = collect(locks, "node-failed");
    await bench.warmUp(locks);
    await bench.holdByForeigner([0, 1], key);
    bench.freeze(2);
    // One attempt. Its clean-up is limited by the node timeout, so the test does not wait for it.
    const refusal = new Promise((resolve) => {
      locks.on("attempt", ({ outcome }) => resolve(outcome));
    });
    const attempt = locks.tryAcquire(key);
    expect(await refusal).toBe("held");
    expect(connections[2]?.unanswered).toBeGreaterThan(0);
    expect(failures).toEqual([]);
    bench.thaw(2);
    expect(await attempt).toBeUndefined();
    expect(await bench.values(key)).toEqual(["foreign", "foreign", null, null, null]);
    await bench.freeByForeigner([0, 1], key);
  });

  test("a fault of the nodes is reported, not contention, if all are frozen", async () => {
    const locks = await bench.locks(3, { ...mode, nodeTimeout: 60 });
    await bench.warmUp(locks);
    bench.freeze(0, 1, 2);
    const error = await rejection(locks.acquire(key, { wait: 0 }));
    expect(error).toBeInstanceOf(QuorumError);
    const { votes } = error as QuorumError;
    expect(votes.map(({ node, vote }) => `${node} ${vote}`)).toEqual([
      "node-1 unknown",
      "node-2 unknown",
      "node-3 unknown",
    ]);
    for (const { cause } of votes) expect(String(cause)).toContain("no answer within 60 ms");
    bench.thaw(0, 1, 2);
    await bench.untilFree();
  });

  test("a majority goes on after a node was killed, and uses that node again after its return", async () => {
    const locks = await bench.locks(3, mode, { wait: "30s" });
    const [failed, recovered] = [collect(locks, "node-failed"), collect(locks, "node-recovered")];
    const lease = await locks.acquire(key);
    await kill(1);
    await eventually(async () => {
      await lease.extend();
      return failed.length > 0;
    });
    expect(failed[0]).toMatchObject({ node: "node-2" });
    expect(await lease.release()).toEqual({ released: true });
    const second = await locks.acquire(key);
    // The node comes back empty: the lease rests on the two others.
    await bench.server(1).restart({ empty: true });
    await eventually(async () => {
      await second.extend();
      return recovered.length > 0;
    });
    expect(recovered).toEqual([{ node: "node-2" }]);
    expect(await second.prove()).toBe(true);
    expect(await second.release()).toEqual({ released: true });
    // With another node frozen, the vote of this one is needed.
    bench.freeze(2);
    const third = await locks.acquire(key);
    expect(await bench.server(1).command("EXISTS", key)).toBe(1);
    expect(await third.release()).toEqual({ released: true });
    bench.thaw(2);
  });

  test("the error names each node and its cause if all are down, and never reports the lock as held", async () => {
    const locks = await bench.locks(3, mode);
    await (await locks.acquire(key)).release();
    await kill(0, 1, 2);
    for (const wait of [0, 150]) {
      const error = await rejection(locks.acquire(key, { wait }));
      expect(error).toBeInstanceOf(QuorumError);
      expect(error).not.toBeInstanceOf(AcquireTimeoutError);
      const { votes, message } = error as QuorumError;
      expect(votes.map(({ node }) => node)).toEqual(["node-1", "node-2", "node-3"]);
      for (const { vote, cause } of votes) {
        expect(["failed", "unknown"]).toContain(vote);
        expect(cause).toBeInstanceOf(Error);
      }
      expect(message).toContain("needs 2 of 3 nodes");
    }
    expect(await rejection(locks.tryAcquire(key))).toBeInstanceOf(QuorumError);
  });

  test("a fault is reported if two of five are held and the rest is down", async () => {
    const locks = await bench.locks(5, mode);
    await bench.warmUp(locks);
    await bench.holdByForeigner([0, 1], key);
    await kill(2, 3, 4);
    const error = await rejection(locks.acquire(key, { wait: 100 }));
    expect(error).toBeInstanceOf(QuorumError);
    const failed = (error as QuorumError).votes.filter(({ vote }) => vote === "failed");
    expect(failed.map(({ node }) => node)).toEqual(["node-3", "node-4", "node-5"]);
    await bench.freeByForeigner([0, 1], key);
  });

  test("a fault is reported if half of four are held and the other half is down", async () => {
    const locks = await bench.locks(4, mode);
    await bench.warmUp(locks);
    await bench.holdByForeigner([0, 1], key);
    await kill(2, 3);
    expect(await rejection(locks.acquire(key, { wait: 100 }))).toBeInstanceOf(QuorumError);
    await bench.freeByForeigner([0, 1], key);
  });

  test("a lock is reported as held if two of three are held and the third is down", async () => {
    const locks = await bench.locks(3, mode);
    await bench.warmUp(locks);
    await bench.holdByForeigner([0, 1], key);
    await kill(2);
    const error = await rejection(locks.acquire(key, { wait: 100 }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    await bench.freeByForeigner([0, 1], key);
  });
});

test("a client that is not connected counts as a failed vote, at once", async () => {
  const port = await freePort();
  const locks = openLocks([dial(port)], patient);
  const error = await rejection(locks.acquire(key, { wait: 0 }));
  expect(error).toBeInstanceOf(QuorumError);
  const [vote] = (error as QuorumError).votes;
  expect(vote).toMatchObject({ node: "redis", vote: "failed" });
  expect(vote?.cause).toBeInstanceOf(NotConnectedError);
});

test("the connected majority grants while one client never connects", async () => {
  const clients = await bench.connectAll(2);
  const locks = openLocks([...clients, dial(await freePort())], patient);
  const failures = collect(locks, "node-failed");
  const lease = await locks.acquire(key, { wait: 0 });
  expect(failures).toMatchObject([{ node: "node-3", vote: "failed" }]);
  expect(await lease.release()).toEqual({ released: true });
});

test("a call waits for a server that starts later, and sends nothing late", async () => {
  const port = await freePort();
  const locks = openLocks([dial(port)], {}, { wait: "60s" });
  const attempts = collect(locks, "attempt");
  const waiting = locks.acquire(key);
  await eventually(() => attempts.length > 1);
  expect(attempts.every(({ outcome }) => outcome === "failed")).toBe(true);
  const server = await startRedis({ port });
  onTestFinished(() => server.stop());
  const lease = await waiting;
  expect(await server.command("DBSIZE")).toBe(2);
  await lease.release();
  expect(await server.command("KEYS", "*")).toEqual(["holdfast:node"]);
});

test("a call wakes a lazy client, and waits for its first connect", async () => {
  const client = dial(bench.server(0).port, { lazyConnect: true });
  const locks = openLocks([client]);
  expect(client.status).toBe("wait");
  const lease = await locks.tryAcquire(key);
  expect(lease?.state).toBe("held");
  await lease?.release();
});

test("a key that only a frozen node still has is released once the node thaws", async () => {
  const locks = await bench.locks(3, { nodeTimeout: 50 });
  await bench.warmUp(locks);
  const lease = await locks.acquire(key, { wait: "5s" });
  bench.freeze(2);
  expect(await lease.release()).toEqual({ released: true });
  bench.thaw(2);
  // With its TTL of 20 s it would stay far longer.
  await eventually(async () => (await bench.server(2).command("EXISTS", key)) === 0, 10_000);
});

test("a release on one node is not delayed by another node that is frozen", async () => {
  const clients = await Promise.all(
    [0, 1, 2].map((index) =>
      connect(bench.server(index).port, { autoResendUnfulfilledCommands: false }),
    ),
  );
  const locks = openLocks(clients, { nodeTimeout: 50 });
  const lease = await locks.acquire(key, { wait: "5s" });
  // Both nodes lose their connection, so both still need the release.
  for (const client of clients.slice(1)) client.disconnect(true);
  await lease.release();
  bench.freeze(1);
  await sleep(300);
  await eventually(async () => (await bench.server(2).command("EXISTS", key)) === 0, 10_000);
  bench.thaw(1);
  await eventually(async () => (await bench.server(1).command("EXISTS", key)) === 0, 10_000);
});

test("a fault is reported if a node fails between its grant and the agreement on a fence", async () => {
  const [ahead, failing, other] = await bench.connectAll(3);
  if (ahead === undefined || failing === undefined || other === undefined) return;
  const inner = watchConnection(failing);
  const connection: RedisConnection = {
    ...inner,
    send: (routeBy, command) =>
      operationsIn(command)?.kinds.includes("touch") === true
        ? Promise.reject(new Error("Connection is closed."))
        : inner.send(routeBy, command),
  };
  const locks = openLocks([ahead, connection, other]);
  await locks.nodes();
  // Two nodes are left, and the counter of one is an hour ahead, so they need a second round.
  const aheadUs = String((Date.now() + 3_600_000) * 1_000);
  await bench.server(0).command("HSET", "holdfast:node", String(shardOf(key)), aheadUs);
  await kill(2);
  const error = await rejection(locks.tryAcquire(key));
  expect(error).toBeInstanceOf(QuorumError);
  expect((error as QuorumError).votes[1]).toMatchObject({ node: "node-2", vote: "unknown" });
  expect(await bench.server(0).command("EXISTS", key)).toBe(0);
  expect(await bench.server(1).command("EXISTS", key)).toBe(0);
});
