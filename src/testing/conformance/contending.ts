import type { Lease } from "../../core/lease/lease.ts";
import type { Locks } from "../../core/locks.ts";
import { settle } from "../manual-clock.ts";
import { type Bench, conformanceCase } from "./bench.ts";
import { check, present, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

/** Holds of all managers together in a case with many of them. */
const holdsMax = 90;
const managerCount = 3;

/** Opens managers, and notes the errors of their failed attempts. */
async function watched(bench: Bench): Promise<{ managers: readonly Locks[]; faults: unknown[] }> {
  const managers = await Promise.all(Array.from({ length: managerCount }, () => bench.open()));
  const faults: unknown[] = [];
  for (const locks of managers) {
    locks.on("attempt", ({ outcome, error }) => {
      if (outcome === "failed") faults.push(error?.message);
    });
  }
  return { managers, faults };
}

/** Lets each manager hold the resource again and again, and calls `held` with each lease. */
async function holdInTurns(
  bench: Bench,
  managers: readonly Locks[],
  resource: string,
  held: (lease: Lease) => Promise<void> | void,
): Promise<void> {
  const turns = managers.map(async (locks) => {
    for (let hold = 0; hold < holdsMax / managers.length; hold += 1) {
      const lease = await locks.acquire(resource, { wait: "forever" });
      await held(lease);
      same((await lease.release()).released, true, "a release");
    }
  });
  await bench.settled("all holds", Promise.all(turns));
}

export const contending: readonly ConformanceCase[] = [
  conformanceCase(
    "fails no attempt while managers take turns on a healthy store",
    async (bench) => {
      const { managers, faults } = await watched(bench);
      let inside = 0;
      await holdInTurns(bench, managers, bench.resource(), async () => {
        inside += 1;
        await settle();
        same(inside, 1, "holders at once");
        inside -= 1;
      });
      sameList(faults, [], "the errors of failed attempts");
    },
  ),

  conformanceCase("gives greater fences over many holds and clean-ups", async (bench) => {
    if (!bench.capabilities.fencing) return;
    const { managers, faults } = await watched(bench);
    let last = 0n;
    await holdInTurns(bench, managers, bench.resource(), async ({ fence }) => {
      check(fence > last, `fence ${fence} came after ${last}`);
      last = fence;
      await bench.cleanUp();
    });
    await bench.cleanUp();
    const lease = present(await managers[0]?.acquire(bench.resource()), "a last lease");
    check(lease.fence > last, `fence ${lease.fence} came after ${last}, after a clean-up`);
    sameList(faults, [], "the errors of failed attempts");
  }),

  conformanceCase("serves waiting managers in their order, if it says so", async (bench) => {
    if (!bench.servesInOrder) return;
    const holder = await (await bench.open()).acquire(bench.resource());
    const served: number[] = [];
    const waits: Promise<void>[] = [];
    for (const index of [0, 1, 2, 3]) {
      const locks = await bench.open();
      let refusals = 0;
      locks.on("contended", () => {
        refusals += 1;
      });
      const waiting = locks.acquire(bench.resource(), { wait: "forever" }).then(async (lease) => {
        served.push(index);
        await lease.release();
      });
      waits.push(waiting);
      // The first refusal adds no entry to the store's queue, the second one does.
      await bench.until("a wait is in the queue", () => refusals >= 2);
    }
    await holder.release();
    await bench.settled("all waits", Promise.all(waits));
    sameList(served, [0, 1, 2, 3], "the order in which the managers were served");
  }),
];
