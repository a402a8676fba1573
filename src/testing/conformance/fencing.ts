import type { Lease } from "../../core/lease/lease.ts";
import { conformanceCase } from "./bench.ts";
import { check, coded, same, thrown } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

function checkGreater(leases: readonly Lease[]): void {
  for (const [index, lease] of leases.entries()) {
    const before = leases[index - 1];
    check(lease.fence > 0n, "a fence is greater than zero");
    if (before === undefined) continue;
    check(lease.fence > before.fence, `fence ${lease.fence} came after ${before.fence}`);
  }
}

export const fencing: readonly ConformanceCase[] = [
  conformanceCase("gives each holder a greater fence, or says that it cannot", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    if (!bench.capabilities.fencing) {
      const lease = await ours.acquire(resource);
      coded(
        thrown(() => lease.fence, "fence"),
        "UNSUPPORTED",
        "fence",
      );
      same((await ours.inspect(resource)).fence, undefined, "the fence in the store");
      return;
    }
    const holders: Lease[] = [];
    for (const locks of [ours, theirs, theirs, ours, ours]) {
      const lease = await locks.acquire(resource);
      holders.push(lease);
      await lease.release();
    }
    checkGreater(holders);
  }),

  conformanceCase("gives a greater fence after a lease that expired", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const first = await ours.acquire(resource, bench.brief);
    const second = await bench.settled("the wait", theirs.acquire(resource, { wait: "forever" }));
    if (bench.capabilities.fencing) checkGreater([first, second]);
  }),

  conformanceCase("keeps the fence of a lease that is extended", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource);
    if (!bench.capabilities.fencing) return;
    const { fence } = lease;
    await lease.extend();
    same(lease.fence, fence, "the fence of the lease");
    same((await locks.inspect(resource)).fence, fence, "the fence in the store");
  }),

  conformanceCase("fences several resources by more than each had before", async (bench) => {
    const locks = await bench.open();
    const [one, other] = [bench.resource("one"), bench.resource("other")];
    if (!bench.capabilities.fencing || !bench.capabilities.multiResource) return;
    const holders: Lease[] = [];
    for (const wanted of [one, [one, other], other, [other, one], one]) {
      const lease = await locks.acquire(wanted);
      holders.push(lease);
      await lease.release();
    }
    // Each holder shares a resource with the previous holder, so its fence must be greater.
    checkGreater(holders);
  }),
];
