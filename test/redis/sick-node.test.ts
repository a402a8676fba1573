import { describe, expect, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";

/** Rounds are decided without a node that does not answer, so it need not get every request. */

const bench = shareRedis(3);
const quick = { nodeTimeout: 100 } as const;

async function cycle(locks: Locks, name: string): Promise<void> {
  const lease = await locks.acquire(name);
  await lease.release();
}

async function openWatched(fencing: boolean) {
  const clients = await bench.connectAll();
  const connections = clients.map((client) => watchConnection(client));
  const locks = openLocks(connections, { ...quick, fencing });
  /**
   * Tracks the last reported state of the third node, which may fail on a busy machine before it
   * is frozen.
   */
  const third = { state: "recovered" };
  locks.on("node-failed", ({ node }) => {
    if (node === "node-3") third.state = "failed";
  });
  locks.on("node-recovered", ({ node }) => {
    if (node === "node-3") third.state = "recovered";
  });
  await bench.warmUp(locks);
  const unanswered = (index: number): number => connections[index]?.unanswered ?? 0;
  return { locks, third, unanswered };
}

/** Acquires and releases until the third node has been silent for so long that it is skipped. */
async function untilLeftAlone(locks: Locks, third: { state: string }): Promise<void> {
  await eventually(async () => {
    await cycle(locks, "while it is silent");
    return third.state === "failed";
  });
}

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", ({ fencing }) => {
  test("a frozen node gets probes instead of every request, and is used again as soon as it answers", async () => {
    const { locks, third, unanswered } = await openWatched(fencing);
    bench.freeze(2);
    await untilLeftAlone(locks, third);
    const before = unanswered(2);
    for (let count = 0; count < 500; count += 1) await cycle(locks, `left alone ${count}`);
    // With every request it would be 1,000 more. The rest are probes and releases still owed.
    expect(unanswered(2) - before).toBeLessThan(250);
    expect(third.state).toBe("failed");
    bench.thaw(2);
    await eventually(() => third.state === "recovered");
    const lease = await locks.acquire("everywhere");
    await bench.valuesEverywhere("everywhere");
    expect(await lease.release()).toEqual({ released: true });
    await bench.untilFree();
  });

  test("a failed node gets the request if there is no quorum without it", async () => {
    const { locks, third, unanswered } = await openWatched(fencing);
    bench.freeze(2);
    await untilLeftAlone(locks, third);
    await bench.holdByForeigner([1], "wanted");
    const before = unanswered(2);
    const wanted = locks.acquire("wanted", { wait: "20s" });
    await eventually(() => unanswered(2) > before);
    bench.thaw(2);
    const lease = await wanted;
    expect(lease.state).toBe("held");
    await lease.release();
    await bench.freeByForeigner([1], "wanted");
    await bench.untilFree();
  });
});
