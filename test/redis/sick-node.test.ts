import { describe, expect, test } from "vitest";
import type { Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { openLocks, shareRedis, watchConnection } from "../support/redis-harness.ts";

/** Rounds are decided without a node that does not answer: then it need not be asked every time. */

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
  /** What was last told of the third node; on a busy machine it may fail before it is frozen. */
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

/** Takes and gives back until the third node was silent for so long that it is left alone. */
async function untilLeftAlone(locks: Locks, third: { state: string }): Promise<void> {
  await eventually(async () => {
    await cycle(locks, "while it is silent");
    return third.state === "failed";
  });
}

describe.each([{ fencing: true }, { fencing: false }])("with fencing $fencing", ({ fencing }) => {
  test("a frozen node is probed instead of being asked each time, and is back at once", async () => {
    const { locks, third, unanswered } = await openWatched(fencing);
    bench.freeze(2);
    await untilLeftAlone(locks, third);
    const before = unanswered(2);
    for (let count = 0; count < 500; count += 1) await cycle(locks, `left alone ${count}`);
    // Asked each time it would be 1,000 more; what is left are probes and releases still owed.
    expect(unanswered(2) - before).toBeLessThan(250);
    expect(third.state).toBe("failed");
    bench.thaw(2);
    await eventually(() => third.state === "recovered");
    const lease = await locks.acquire("everywhere");
    await bench.valuesEverywhere("everywhere");
    expect(await lease.release()).toEqual({ released: true });
    await bench.untilFree();
  });

  test("it is asked where a quorum would be lacking without it", async () => {
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
