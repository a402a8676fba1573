import type { Lease } from "../../core/lease/lease.ts";
import type { Locks } from "../../core/locks.ts";
import { partsOf } from "../../core/manager-parts.ts";
import type { RaiseOutcome } from "../../core/mark.ts";
import { type Bench, conformanceCase } from "./bench.ts";
import { check, same } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

const longAgoMs = 0;

/** A case for stores that keep marks. Other stores must not have the methods. */
function marksCase(name: string, run: (bench: Bench) => Promise<void>): ConformanceCase {
  return conformanceCase(name, async (bench) => {
    if (bench.capabilities.marks === true) return await run(bench);
    const { store } = partsOf(await bench.open());
    same("mark" in store, false, "mark() of a store without marks");
    same("raiseMark" in store, false, "raiseMark() of a store without marks");
  });
}

async function raise(
  locks: Locks,
  { fence }: Pick<Lease, "fence">,
  name: string,
  value: number,
  dueMs: number = longAgoMs,
): Promise<RaiseOutcome["kind"] | undefined> {
  return (await partsOf(locks).store.raiseMark?.(name, { value, fence }, dueMs))?.kind;
}

async function valueOf(locks: Locks, name: string): Promise<number | undefined> {
  return (await partsOf(locks).store.mark?.(name))?.value;
}

/** Returns two leases, one after the other. */
async function holders(
  bench: Bench,
  name: string,
): Promise<{ locks: Locks; early: Lease; late: Lease }> {
  const locks = await bench.open();
  const early = await locks.acquire(name);
  await early.release();
  const late = await locks.acquire(name);
  await late.release();
  check(late.fence > early.fence, "the later lease has a greater fence");
  return { locks, early, late };
}

export const marks: readonly ConformanceCase[] = [
  marksCase("has no mark before the first is raised, and then shows it to all", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const name = bench.resource();
    same(await valueOf(ours, name), undefined, "the mark before");
    const lease = await ours.acquire(name);
    same(await raise(ours, lease, name, 7), "raised", "the first raise");
    same(await valueOf(theirs, name), 7, "the mark for another manager");
    same(await raise(ours, lease, name, 8), "raised", "a greater value of the same lease");
    same(await raise(ours, lease, name, 7), "refused", "a smaller value");
    same(await valueOf(theirs, name), 8, "the mark after all");
  }),

  marksCase("refuses the same value of another lease (M-c1)", async (bench) => {
    const name = bench.resource();
    const { locks, early, late } = await holders(bench, name);
    same(await raise(locks, early, name, 1), "raised", "the first raise");
    same(await raise(locks, late, name, 1), "refused", "the same value of a later lease");
    same(await raise(locks, early, name, 1), "raised", "a repeat of the first raise");
  }),

  marksCase("refuses a greater value of an earlier lease", async (bench) => {
    const name = bench.resource();
    const { locks, early, late } = await holders(bench, name);
    same(await raise(locks, late, name, 1), "raised", "the later lease");
    same(await raise(locks, early, name, 2), "refused", "the earlier lease, which woke up late");
    same(await raise(locks, early, name, 1), "refused", "the earlier lease, with the same value");
    same(await valueOf(locks, name), 1, "the mark");
  }),

  marksCase("lets one of many callers at once raise a mark to a value", async (bench) => {
    const name = bench.resource();
    const locks = await bench.open();
    const leases: Lease[] = [];
    for (let count = 0; count < 8; count += 1) {
      const lease = await locks.acquire(name);
      leases.push(lease);
      await lease.release();
    }
    const outcomes = await Promise.all(leases.map((lease) => raise(locks, lease, name, 5)));
    const raised = outcomes.filter((outcome) => outcome === "raised").length;
    same(raised, 1, "the number of callers that raised the mark");
  }),

  marksCase(
    "refuses a value whose time is far ahead of the store's clock (M-c4)",
    async (bench) => {
      const name = bench.resource();
      const locks = await bench.open();
      const lease = await locks.acquire(name);
      const { clock } = partsOf(locks).runtime;
      const nextYearMs = clock.wallMs() + 365 * 86_400_000;
      same(await raise(locks, lease, name, 1, nextYearMs), "early", "a raise that is a year early");
      same(await valueOf(locks, name), undefined, "the mark after it");
      same(await raise(locks, lease, name, 1, clock.wallMs()), "raised", "a raise in time");
    },
  ),

  marksCase("keeps the marks of different names apart", async (bench) => {
    const [one, other] = [bench.resource("one"), bench.resource("other")];
    const locks = await bench.open();
    const lease = await locks.acquire(one);
    same(await raise(locks, lease, one, 5), "raised", "the first name");
    same(await raise(locks, lease, other, 3), "raised", "the second name");
    same(await valueOf(locks, one), 5, "the mark of the first name");
  }),
];
