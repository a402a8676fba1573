import { describe, expect, test } from "vitest";
import { eventually } from "../support/redis-eventually.ts";
import { collect, shareRedis } from "../support/redis-harness.ts";
import { untilQueued } from "./waiting-scene.ts";

/** A client of another library publishes nothing when it releases, so a waiter has to poll. */
const bench = shareRedis(3);

/** A value as redis-semaphore writes it. */
const uuid = "1f0e3dad-9990-4c1e-8b2f-3a6f0c9d7e11";

describe.each([
  [1, true],
  [3, true],
  [1, false],
])("behind a foreign holder on %i nodes, fencing %s", (nodes, fencing) => {
  test("only the first of the waiting managers polls often", async () => {
    const servers = bench.servers.slice(0, nodes);
    const indices = [...servers.keys()];
    await bench.holdByForeigner(indices, "a", uuid);
    const locks = [await bench.locks(nodes, { fencing }), await bench.locks(nodes, { fencing })];
    const attempts = locks.map((each) => collect(each, "attempt"));
    const asked = (index: number): number => attempts[index]?.length ?? 0;
    const calls: Promise<void>[] = [];
    for (const [index, each] of locks.entries()) {
      const call = each.acquire("a", { wait: "forever" });
      calls.push(call.then(async (lease) => void (await lease.release())));
      await untilQueued(servers, "a", index + 1);
    }
    const before = [asked(0), asked(1)];
    await eventually(() => asked(0) - (before[0] ?? 0) >= 40);
    expect(asked(1) - (before[1] ?? 0)).toBeLessThanOrEqual(10);
    await bench.freeByForeigner(indices, "a");
    await Promise.all(calls);
  });
});
