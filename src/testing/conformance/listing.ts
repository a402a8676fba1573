import type { BreakOutcome } from "../../core/break.ts";
import { isHoldfastError } from "../../core/errors.ts";
import type { Locks } from "../../core/locks.ts";
import type { Inspection } from "../../core/store.ts";
import { conformanceCase } from "./bench.ts";
import { check, present, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

/** Cases for `list` and `break`. A case ends early if the store does not support the call. */
export const listing: readonly ConformanceCase[] = [
  conformanceCase("lists what is held, and nothing else", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const names = ["one", "two", "t*[h]?ree\\"].map((suffix) => bench.resource(suffix));
    const free = bench.resource("free");
    await (await ours.acquire(free)).release();
    const lease = await ours.acquire(names, { label: "listed" });
    const held = await orUnsupported(theirs.list());
    if (held === undefined) return;
    const mine = held.filter(({ resource }) => [...names, free].includes(resource));
    sameList(
      mine.map(({ resource }) => resource),
      names.toSorted(),
      "what is held, by name",
    );
    for (const seen of mine) {
      same(seen.state, "held", "the state");
      same(seen.label, "listed", "the label");
      same(seen.fence, bench.capabilities.fencing ? lease.fence : undefined, "the fence");
      check(present(seen.remainingMs, "the time left") > 0, "some time is left");
    }
    await lease.release();
    const after = await theirs.list();
    check(!after.some(({ resource }) => names.includes(resource)), "what was given back is gone");
  }),

  conformanceCase("does not list what has expired", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource, bench.brief);
    await bench.lost(lease);
    await bench.until("it is free", async () => (await locks.inspect(resource)).state === "free");
    const held = await orUnsupported(locks.list());
    check(held?.some((seen) => seen.resource === resource) !== true, "it is not listed");
  }),

  conformanceCase("breaks a lock, and its holder learns it by the next renewal", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const lease = await ours.acquire(resource, { label: "stuck" });
    const outcome = await broken(theirs, resource);
    if (outcome === undefined) return;
    check(outcome.broken, "it was broken");
    same(outcome.holders.length, 1, "the number of holders");
    same(outcome.holders[0]?.label, "stuck", "whose it was");
    if (bench.capabilities.fencing) {
      check(present(outcome.fence, "a fence") > lease.fence, "the fence is greater than the old");
    }
    same((await theirs.inspect(resource)).state, "free", "the state afterwards");
    await lease.extend().catch(() => undefined);
    same(lease.state, "lost", "the state of the lease");
    const { reason } = lease.signal.reason as { readonly reason?: unknown };
    same(reason, "taken", "why it was lost");
    const next = await theirs.acquire(resource);
    if (bench.capabilities.fencing) {
      check(next.fence > (outcome.fence ?? 0n), "the next fence is greater still");
    }
  }),

  conformanceCase("never breaks a later holder than the one that was seen", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const first = await ours.acquire(resource);
    const seen = await theirs.inspect(resource);
    await first.release();
    const second = await ours.acquire(resource);
    const outcome = await broken(theirs, seen);
    if (outcome === undefined) return;
    check(!outcome.broken && outcome.reason === "changed", "it says that the holder has changed");
    check(await second.prove(), "the later holder still has it");
  }),

  conformanceCase("has nothing to break if it is free", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource);
    const seen = await locks.inspect(resource);
    await lease.release();
    for (const shown of [seen, resource]) {
      const outcome = await broken(locks, shown);
      if (outcome === undefined) return;
      check(!outcome.broken && outcome.reason === "free", "it says that it is free");
    }
  }),
];

function broken(locks: Locks, seen: string | Inspection): Promise<BreakOutcome | undefined> {
  return orUnsupported(locks.break(seen));
}

async function orUnsupported<Result>(call: Promise<Result>): Promise<Result | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isHoldfastError(error, "UNSUPPORTED")) return undefined;
    throw error;
  }
}
