import { describe, expect, test } from "vitest";
import type { Lease, Locks } from "../../src/index.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, shareRedis } from "../support/redis-harness.ts";

/**
 * With an even number of nodes, half of them is not a quorum, but enough to prevent one: so "not
 * confirmed" does not mean "lost".
 */

const bench = shareRedis(4);
const options = { ttl: "20s", renew: "100ms" } as const;

async function renewedAgain(locks: Locks, name: string): Promise<void> {
  const renewed = collect(locks, "renewed");
  await eventually(() => renewed.some(({ resources }) => resources[0] === name));
}

async function takenOn(indices: readonly number[], key: string): Promise<void> {
  for (const index of indices) {
    await bench.server(index).command("SET", key, "another", "PX", "20000");
  }
}

describe.each([
  { fencing: true, what: "one lock", names: ["a"] },
  { fencing: false, what: "one lock", names: ["a"] },
  { fencing: true, what: "two locks", names: ["a", "b"] },
])("a lease of $what on four nodes, with fencing $fencing", ({ fencing, names }) => {
  async function acquired(): Promise<{ locks: Locks; lease: Lease }> {
    const locks = await bench.locks(4, { fencing, nodeTimeout: 200 });
    const lease = await locks.acquire(names, options);
    for (const name of names) await bench.valuesEverywhere(name);
    return { locks, lease };
  }

  test("is renewed while another client has one of them", async () => {
    const { locks, lease } = await acquired();
    await takenOn([3], "a");
    await renewedAgain(locks, "a");
    expect(lease.state).toBe("held");
    await bench.freeByForeigner([3], "a");
    await lease.release();
    await bench.untilFree();
  });

  test("is lost if another client has two of them, because no three are left", async () => {
    const { locks, lease } = await acquired();
    const lost = collect(locks, "lost");
    await takenOn([2, 3], "a");
    await eventually(() => lease.state === "lost");
    expect(lost.map(({ reason }) => reason)).toEqual(["taken"]);
    await lease.release();
    await bench.freeByForeigner([2, 3], "a");
    await bench.untilFree();
  });

  test("is doubtful, and not lost, while two of them do not answer", async () => {
    const { lease } = await acquired();
    bench.freeze(2, 3);
    await eventually(() => lease.state === "doubtful");
    bench.thaw(2, 3);
    await eventually(() => lease.state === "held");
    await lease.release();
    await bench.untilFree();
  });
});
