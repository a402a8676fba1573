import { expect, test } from "vitest";
import type { Runtime } from "../../src/core/ports.ts";
import { nodeRuntime } from "../../src/runtime/node-runtime.ts";
import { eventually } from "../support/redis-eventually.ts";
import { shareRedis } from "../support/redis-harness.ts";
import { queueOn } from "./waiting-scene.ts";

const bench = shareRedis(3);
const key = "invoice:42";

/** Returns a runtime with an offset of the wall clock. */
function off(byMs: number): Runtime {
  return {
    ...nodeRuntime,
    clock: {
      monotonicMs: () => nodeRuntime.clock.monotonicMs(),
      wallMs: () => nodeRuntime.clock.wallMs() + byMs,
      setTimer: (ms, keepAlive, run) => nodeRuntime.clock.setTimer(ms, keepAlive, run),
      timerSlackMs: nodeRuntime.clock.timerSlackMs,
    },
  };
}

const cases = [1, 3].flatMap((nodes) => [true, false].map((fencing) => ({ nodes, fencing })));

test.each(cases)(
  "on $nodes nodes, fencing $fencing, a wrong wall clock does not change the order",
  async ({ nodes, fencing }) => {
    const holder = await (await bench.locks(nodes, { fencing })).acquire(key);
    const served: number[] = [];
    const waiting: Promise<void>[] = [];
    let ids: string[] = [];
    // By their own clocks, one that is ahead would be last, and one that is behind first.
    for (const byMs of [15_000, 0, 5_000, -15_000, 0, 3_600_000]) {
      const defaults = { wait: "forever", runtime: off(byMs) } as const;
      const locks = await bench.locks(nodes, { fencing }, defaults);
      const call = locks.using(key, () => {
        served.push(byMs);
      });
      waiting.push(call);
      // Without fences the first reply carries no time, so the next attempt corrects the ticket.
      ids = await untilBehind(nodes, ids);
    }
    await holder.release();
    await Promise.all(waiting);
    expect(served).toEqual([15_000, 0, 5_000, -15_000, 0, 3_600_000]);
  },
);

/** Resolves with all ids when one more waiter is in every queue, behind the earlier ones. */
async function untilBehind(nodes: number, before: readonly string[]): Promise<string[]> {
  return await eventually(async () => {
    const servers = bench.servers.slice(0, nodes);
    const queues = await Promise.all(servers.map((server) => queueOn(server, key)));
    const all = queues.map((places) => places.map(({ id }) => id));
    for (const ids of all) {
      expect(ids).toEqual(all[0]);
      expect(ids).toHaveLength(before.length + 1);
      expect(ids.slice(0, -1)).toEqual(before);
    }
    return all[0] ?? [];
  });
}
