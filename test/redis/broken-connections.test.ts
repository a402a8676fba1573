import { describe, expect, onTestFinished, test } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import type { RedisConnection } from "../../src/clients/contract.ts";
import { createLocks, LeaseLostError, type Lease, type Locks } from "../../src/index.ts";
import { redis } from "../../src/stores/redis/index.ts";
import { connect, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { eventually } from "../support/redis-eventually.ts";
import { textOf } from "../support/sent-operations.ts";
import { startTcpProxy, type WatchingProxy } from "../support/tcp-proxy.ts";

const bench = shareRedis(3);
const key = "invoice:42";

/** Opens a manager with the defaults of ioredis, which resends commands in flight. */
async function lockThroughProxies(nodes: number, fencing: boolean) {
  const proxies = await Promise.all(
    bench.servers.slice(0, nodes).map(({ port }) => startTcpProxy(port)),
  );
  const clients = await Promise.all(proxies.map(({ port }) => connect(port)));
  const locks = openLocks(clients, { fencing, nodeTimeout: "5s" });
  await warmUp(locks);
  return { proxies, locks };
}

/** Loads every script of these tests into every server. */
async function warmUp(locks: Locks): Promise<void> {
  await bench.warmUp(locks);
  const leases = await Promise.all([locks.acquire("first"), locks.acquire("second")]);
  for (const lease of leases) await lease.prove();
  await Promise.all(leases.map((lease) => lease.release()));
  await bench.untilFree();
}

/** Starts `act`, lets every server run the request with `text`, and breaks the connections before the reply. */
async function cutAfter<Result>(
  proxies: readonly WatchingProxy[],
  text: string,
  act: () => Promise<Result>,
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Result> {
  for (const proxy of proxies) proxy.holdRepliesAfter(text);
  const acting = act();
  // It may reject before it is awaited below.
  acting.catch(() => undefined);
  await eventually(() => proxies.every((proxy) => proxy.hasHeldReplies));
  await meanwhile();
  for (const proxy of proxies) proxy.cutBeforeReply();
  return await acting;
}

const setUps = [1, 3].flatMap((nodes) => [
  { nodes, fencing: true },
  { nodes, fencing: false },
]);

describe.each(setUps)("on $nodes nodes, with fencing $fencing", ({ nodes, fencing }) => {
  test("a release whose reply was lost is not reported as taken", async () => {
    const { proxies, locks } = await lockThroughProxies(nodes, fencing);
    for (let cut = 0; cut < 5; cut += 1) {
      const lease = await locks.acquire(key);
      const outcome = await cutAfter(proxies, textOf("release"), () => lease.release());
      expect(outcome).toEqual({ released: false, reason: "unreachable" });
      await bench.untilFree();
    }
  });

  test("a lost reply to its release does not make finished work fail", async () => {
    const { proxies, locks } = await lockThroughProxies(nodes, fencing);
    for (let cut = 0; cut < 5; cut += 1) {
      const work = () => locks.using(key, { renew: false }, () => cut);
      expect(await cutAfter(proxies, textOf("release"), work)).toBe(cut);
    }
    await bench.untilFree();
  });

  test("a lost reply to a batch of releases is not reported as taken", async () => {
    const { proxies, locks } = await lockThroughProxies(nodes, fencing);
    const leases = await Promise.all(["a", "b", "c"].map((name) => locks.acquire(name)));
    const outcomes = await cutAfter(proxies, textOf("release", 3), () =>
      Promise.all(leases.map((lease) => lease.release())),
    );
    for (const outcome of outcomes) {
      expect(outcome).toEqual({ released: false, reason: "unreachable" });
    }
    await bench.untilFree();
  });

  test("a lock that was really taken is reported if the connection did not break", async () => {
    const { locks } = await lockThroughProxies(nodes, fencing);
    const all = bench.servers.map((_, index) => index);
    const error = await rejection(
      locks.using(key, { renew: false }, () => bench.freeByForeigner(all, key)),
    );
    expect(error).toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    await bench.untilFree();
  });

  test("a break whose reply was lost reports what it broke", async () => {
    const { proxies, locks } = await lockThroughProxies(nodes, fencing);
    const held = await (await bench.locks(nodes, { fencing })).acquire(key);
    const outcome = await cutAfter(proxies, textOf("release"), () => locks.break(key));
    expect(outcome).toMatchObject({ broken: true, holders: [{}] });
    if (outcome.broken && fencing) expect(outcome.fence).toBeGreaterThan(held.fence);
    expect(await held.prove()).toBe(false);
    await bench.untilFree();
  });

  const questions = [
    { name: "prove", ask: (lease: Lease) => lease.prove() },
    { name: "extend", ask: (lease: Lease) => lease.extend().then(() => true) },
  ];
  describe.each(questions)("$name", ({ ask }) => {
    test("finds that the lease is held, although a reply was lost", async () => {
      const { proxies, locks } = await lockThroughProxies(nodes, fencing);
      const lease = await locks.acquire(key, { renew: false });
      for (let cut = 0; cut < 3; cut += 1) {
        expect(await cutAfter(proxies, textOf("touch"), () => ask(lease))).toBe(true);
      }
      expect(lease.state).toBe("held");
      await lease.release();
      await bench.untilFree();
    });

    test("finds that the key is gone, although a reply was lost", async () => {
      const { proxies, locks } = await lockThroughProxies(nodes, fencing);
      const lease = await locks.acquire(key, { renew: false });
      const all = bench.servers.map((_, index) => index).slice(0, nodes);
      await eventually(async () => !(await bench.values(key)).slice(0, nodes).includes(null));
      const vanish = () => bench.freeByForeigner(all, key);
      const found = cutAfter(proxies, textOf("touch"), () => ask(lease), vanish);
      await found.catch((error: unknown) => expect(error).toBeInstanceOf(LeaseLostError));
      expect(lease.state).toBe("lost");
      expect(lease.signal.reason).toMatchObject({ reason: "taken" });
    });
  });

  test("renewals whose replies were lost leave leases held, and detect a missing key", async () => {
    const { proxies, locks } = await lockThroughProxies(nodes, fencing);
    const names = ["a", "b", "c"];
    const leases = await Promise.all(names.map((name) => locks.acquire(name, { renew: "1s" })));
    const all = bench.servers.map((_, index) => index).slice(0, nodes);
    await eventually(async () => !(await bench.values("b")).slice(0, nodes).includes(null));
    // Starts nothing, because the manager renews by itself.
    const nothing = () => Promise.resolve();
    await cutAfter(proxies, textOf("touch"), nothing, () => bench.freeByForeigner(all, "b"));
    await eventually(() => leases[1]?.state === "lost");
    expect(leases[1]?.signal.reason).toMatchObject({ reason: "taken" });
    await eventually(() => leases[0]?.state === "held" && leases[2]?.state === "held");
    await Promise.all(leases.map((lease) => lease.release()));
    await bench.untilFree();
  });

  test("300 uses during 10 CLIENT KILLs all succeed", async () => {
    const { locks } = await lockThroughProxies(nodes, fencing);
    let [begun, done] = [0, 0];
    let killing: Promise<unknown> = Promise.resolve();
    const killAll = async (): Promise<void> => {
      for (const server of bench.servers) await server.command("CLIENT", "KILL", "TYPE", "normal");
    };
    const losses: unknown[] = [];
    const worker = async (name: string): Promise<void> => {
      while (begun < 300) {
        begun += 1;
        // One kill after the other, because each breaks the connections of the others.
        if (begun % 30 === 15) await (killing = killing.then(killAll));
        try {
          await locks.using(name, { wait: "20s" }, () => (done += 1));
        } catch (error) {
          losses.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: 12 }, (_, index) => worker(`soak:${index % 6}`)));
    expect(losses).toEqual([]);
    expect(done).toBe(300);
    await bench.untilFree();
  });
});

/** Sends the first command that contains the argument `text` to another server, as a wrong address would. */
function misled(right: object, wrong: object, text: string) {
  const [straight, astray] = [connectionOf(right), connectionOf(wrong)];
  if (straight === undefined || astray === undefined) throw new Error("not recognised");
  let misleads = 0;
  const connection: RedisConnection & { wasMisled(): boolean } = {
    library: straight.library,
    topology: straight.topology,
    resendEpoch: () => misleads,
    wasMisled: () => misleads > 0,
    async send(name, command) {
      if (misleads > 0 || !command.includes(text)) return await straight.send(name, command);
      misleads += 1;
      return await astray.send(name, command);
    },
  };
  return connection;
}

test("a missing key on a server that the request was not meant for ends no lease", async () => {
  const [right, wrong] = await Promise.all([0, 1].map((n) => connect(bench.server(n).port)));
  if (right === undefined || wrong === undefined) throw new Error("no clients");
  const renewed = (locks: Locks) => new Promise((resolve) => locks.on("renewed", resolve));
  const other = openLocks([wrong]);
  const nextRenewal = renewed(other);
  const known = await other.acquire("warm-up", { renew: "20ms" });
  await known.prove();
  await nextRenewal;
  await known.release();
  const questions = [
    { renewEvery: false, ask: (lease: Lease) => lease.prove() },
    { renewEvery: false, ask: (lease: Lease) => lease.extend() },
    { renewEvery: "20ms", ask: (_: Lease, locks: Locks) => renewed(locks) },
  ] as const;
  for (const { renewEvery, ask } of questions) {
    const connection = misled(right, wrong, "T 1 1");
    const locks = createLocks(redis(connection), { ttl: "20s" });
    onTestFinished(() => locks.close());
    const lease = await locks.acquire(key, { renew: renewEvery });
    await ask(lease, locks);
    expect(connection.wasMisled()).toBe(true);
    expect(lease.state).toBe("held");
    expect(await lease.release()).toEqual({ released: true });
  }
});
