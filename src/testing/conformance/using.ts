import { conformanceCase } from "./bench.ts";
import { coded, present, refusal, rejection, same, sameList, thrown } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

export const using: readonly ConformanceCase[] = [
  conformanceCase("holds the lease while the work runs, and gives its result", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const result = await ours.using(resource, async (lease) => {
      sameList(lease.resources, [resource], "the lease's resources");
      lease.assertHeld();
      same(await theirs.tryAcquire(resource), undefined, "a rival meanwhile");
      return 42;
    });
    same(result, 42, "the result");
    present(await theirs.tryAcquire(resource), "a rival afterwards");
    const label = "with options";
    const labelled = await ours.using(bench.resource("b"), { label }, (lease) => lease.label);
    same(labelled, label, "the result of the form with options");
  }),

  conformanceCase("passes the work's error on, and releases", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const error = new Error("the work failed");
    const rejected = ours.using(resource, () => Promise.reject(error));
    same(await rejection(rejected, "using"), error, "the rejection");
    const threw = ours.using(bench.resource("b"), () => {
      throw error;
    });
    same(await rejection(threw, "using"), error, "the exception");
    present(await theirs.tryAcquire(resource), "a rival afterwards");
  }),

  conformanceCase("never calls work done in time that outlived its lease", async (bench) => {
    const locks = await bench.open();
    const call = locks.using(bench.resource(), bench.brief, async (lease) => {
      await bench.lost(lease);
      return "late";
    });
    const error = await refusal(call, "LEASE_LOST", "using");
    same(error.reason, "expired", "the reason");
    same(error.result, "late", "the result in the error");
  }),

  conformanceCase("carries the error of work that outlived its lease", async (bench) => {
    const locks = await bench.open();
    const own = new Error("the work failed, late");
    const call = locks.using(bench.resource(), bench.brief, async (lease) => {
      await bench.lost(lease);
      throw own;
    });
    const error = await refusal(call, "LEASE_LOST", "using");
    same(error.cause, own, "the cause");
    const rethrown = locks.using(bench.resource("b"), bench.brief, async (lease) => {
      await bench.lost(lease);
      lease.signal.throwIfAborted();
    });
    const loss = await refusal(rethrown, "LEASE_LOST", "using");
    same(loss.cause, undefined, "the cause of a loss that the work passed on");
  }),

  conformanceCase("does not start the work without the lease", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    await ours.acquire(resource);
    let started = false;
    const call = theirs.using(resource, { wait: 0 }, () => {
      started = true;
    });
    await refusal(call, "ACQUIRE_TIMEOUT", "using");
    same(started, false, "whether the work was started");
  }),

  conformanceCase("renews by itself while the work runs", async (bench) => {
    const locks = await bench.open();
    let renewals = 0;
    locks.on("renewed", () => {
      renewals += 1;
    });
    const ttl = 3 * bench.shortTtlMs;
    const result = await locks.using(bench.resource(), { ttl }, async (lease) => {
      await bench.until("the lease was renewed twice", () => renewals >= 2);
      lease.assertHeld();
      return "done";
    });
    same(result, "done", "the result");
    const before = renewals;
    await bench.pass(ttl / 2);
    same(renewals, before, "renewals after the work was done");
  }),

  conformanceCase("signals work whose manager is closed", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const call = ours.using(resource, async (lease) => {
      await bench.settled("close", ours.close());
      same(lease.signal.aborted, true, "whether the signal is aborted");
      coded(lease.signal.reason, "CLOSED", "signal.reason");
      coded(
        thrown(() => lease.assertHeld(), "assertHeld"),
        "CLOSED",
        "assertHeld",
      );
      present(await theirs.tryAcquire(resource), "a rival, while the work still runs");
      return "done without the lock";
    });
    await refusal(call, "CLOSED", "using");
  }),
];
