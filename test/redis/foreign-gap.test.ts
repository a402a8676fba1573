import { setTimeout as realDelay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Runtime } from "../../src/core/ports.ts";
import { createLocks, InvalidOptionError, type Lease, type Locks } from "../../src/index.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { redlock, redlockGroups } from "../../src/stores/redis/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks, shareRedis } from "../support/redis-harness.ts";
import { loadScripts, notify, untilQueued } from "./waiting-scene.ts";

/**
 * Managers with `foreignGap` on real servers. Their timers fire only when the test allows it, so
 * that a gap stays open for as long as the test needs.
 */
const bench = shareRedis(3);
loadScripts(bench);

/** Time for a wake-up and its effects to arrive. Only a broken gap would use it. */
const arrivedMs = 60;

interface Fleet {
  readonly managers: readonly Locks[];
  /** Lets timers fire normally from here on. */
  readonly letTimersFire: () => void;
}

async function fleetOf(count: number, nodes: number, fencing = true): Promise<Fleet> {
  const { runtime, letTimersFire } = heldTimers();
  const all = Array.from({ length: count }, async () => {
    const clients = await bench.connectAll(nodes);
    return openLocks(clients, { fencing, foreignGap: 100 }, { wait: "forever", runtime });
  });
  return { letTimersFire, managers: await Promise.all(all) };
}

function heldTimers(): { runtime: Runtime; letTimersFire: () => void } {
  const { clock } = nodeRuntime;
  let held: Set<() => void> | undefined = new Set();
  const setTimer: Runtime["clock"]["setTimer"] = (delayMs, keepAlive, callback) => {
    let cancel: () => void = () => held?.delete(begin);
    const begin = (): void => {
      cancel = clock.setTimer(delayMs, keepAlive, callback);
    };
    if (held === undefined) begin();
    else held.add(begin);
    return () => cancel();
  };
  return {
    runtime: {
      ...nodeRuntime,
      clock: {
        monotonicMs: () => clock.monotonicMs(),
        wallMs: () => clock.wallMs(),
        setTimer,
        timerSlackMs: clock.timerSlackMs,
      },
    },
    letTimersFire() {
      const waiting = held ?? [];
      held = undefined;
      for (const begin of waiting) begin();
    },
  };
}

function managerOf({ managers }: Fleet, index: number): Locks {
  const manager = managers[index];
  if (manager === undefined) throw new Error(`there is no manager ${index}`);
  return manager;
}

/** Returns the replies of the first `nodes` servers to a client that does not know Holdfast. */
async function takeByForeigner(nodes: number): Promise<unknown[]> {
  const servers = bench.servers.slice(0, nodes);
  // A quorum has confirmed the release; the last node may need a moment more.
  await eventually(async () => {
    const values = await Promise.all(servers.map((server) => server.command("GET", "a")));
    expect(values).toEqual(servers.map(() => null));
  });
  return await Promise.all(
    servers.map((server) => server.command("SET", "a", "foreign", "NX", "PX", "60000")),
  );
}

async function release(call: Promise<Lease>): Promise<void> {
  const lease = await call;
  await lease.release();
}

describe.each([
  [1, true],
  [3, true],
  [1, false],
])("on %i nodes, fencing %s", (nodes, fencing) => {
  const servers = () => bench.servers.slice(0, nodes);
  const taken = Array.from({ length: nodes }, () => "OK");
  const free = () => bench.freeByForeigner([...servers().keys()], "a");

  test("a foreign client gets in between two holders of one manager", async () => {
    const fleet = await fleetOf(1, nodes, fencing);
    const locks = managerOf(fleet, 0);
    const lease = await locks.acquire("a");
    const next = locks.acquire("a", { label: "so that it is not passed on" });
    await untilQueued(servers(), "a", 1);
    await lease.release();
    expect(await takeByForeigner(nodes)).toEqual(taken);
    await free();
    fleet.letTimersFire();
    await release(next);
  });

  test("a foreign client gets in between two managers", async () => {
    const fleet = await fleetOf(2, nodes, fencing);
    const lease = await managerOf(fleet, 0).acquire("a");
    const next = managerOf(fleet, 1).acquire("a");
    await untilQueued(servers(), "a", 1);
    await lease.release();
    // By now the other manager has been notified, and leaves the lock free all the same.
    await realDelay(arrivedMs);
    expect(await takeByForeigner(nodes)).toEqual(taken);
    await free();
    fleet.letTimersFire();
    await release(next);
  });

  test("a foreign client gets in before a new call", async () => {
    const fleet = await fleetOf(1, nodes, fencing);
    const locks = managerOf(fleet, 0);
    const lease = await locks.acquire("a");
    const released = lease.release();
    const next = locks.tryAcquire("a");
    await released;
    await realDelay(arrivedMs);
    expect(await takeByForeigner(nodes)).toEqual(taken);
    fleet.letTimersFire();
    expect(await next).toBeUndefined();
    await free();
  });
});

test("wake-ups that keep coming do not delay the attempt", async () => {
  const locks = await bench.locks(1, { foreignGap: 100 });
  await bench.holdByForeigner([0], "a");
  const granted: Lease[] = [];
  const next = locks.acquire("a").then((lease) => granted.push(lease));
  const [[place] = []] = await untilQueued([bench.server(0)], "a", 1);
  await bench.freeByForeigner([0], "a");
  for (let count = 0; count < 100 && granted.length === 0; count += 1) {
    await notify(bench.server(0), place?.id ?? "");
    await realDelay(20);
  }
  expect(granted).toHaveLength(1);
  await next;
  await granted[0]?.release();
});

test("a lock that is handed over leaves no gap", async () => {
  const fleet = await fleetOf(1, 1);
  const locks = managerOf(fleet, 0);
  await bench.holdByForeigner([0], "a");
  const first = locks.acquire("a");
  const [[place] = []] = await untilQueued([bench.server(0)], "a", 1);
  const second = locks.acquire("a");
  await bench.freeByForeigner([0], "a");
  fleet.letTimersFire();
  await notify(bench.server(0), place?.id ?? "");
  const lease = await first;
  const passedOn = lease.release();
  const following = await second;
  // The next reserved fence: no request was sent to the servers.
  expect(following.fence).toBe(lease.fence + 1n);
  await passedOn;
  await following.release();
});

test("groups leave gaps as well", async () => {
  const { runtime, letTimersFire } = heldTimers();
  const clients = await bench.connectAll(2);
  const groups = clients.map((client) => [client]);
  const store = redlockGroups(groups, { admission: "off", foreignGap: "100ms" });
  const locks = createLocks(store, { runtime });
  const names = ["a", "b", "c", "d"];
  const lease = await locks.acquire(names);
  const released = lease.release();
  const calls = names.map((name) => locks.tryAcquire(name));
  await released;
  await realDelay(arrivedMs);
  for (const name of names) expect(await bench.values(name)).toEqual([null, null, null]);
  letTimersFire();
  for (const call of calls) await (await call)?.release();
  await locks.close();
});

test.each(["101ms", -1, "soon", true])("a gap of %j is refused", async (foreignGap) => {
  const clients = await bench.connectAll(1);
  expect(() => redlock(clients, { foreignGap } as object)).toThrow(InvalidOptionError);
});
