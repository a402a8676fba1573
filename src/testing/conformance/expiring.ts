import type { LockEvents } from "../../core/events.ts";
import { conformanceCase } from "./bench.ts";
import { check, coded, present, refusal, same, sameList, thrown } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

export const expiring: readonly ConformanceCase[] = [
  conformanceCase("reports to the holder that a lease expired, in every way", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lost: LockEvents["lost"][] = [];
    locks.on("lost", (event) => lost.push(event));
    const lease = await locks.acquire(resource, { ...bench.brief, label: "sleeper" });
    await bench.lost(lease);
    same(lease.state, "lost", "the state");
    same(lease.remainingMs(), 0, "the time left");
    same(lease.signal.aborted, true, "whether the signal is aborted");
    const error = coded(lease.signal.reason, "LEASE_LOST", "signal.reason");
    same(error.reason, "expired", "why it was lost");
    sameList(error.resources, [resource], "what was lost");
    const thrownError = thrown(() => lease.assertHeld(), "assertHeld");
    same(thrownError, error, "assertHeld");
    same(
      thrown(() => lease.signal.throwIfAborted(), "throwIfAborted"),
      error,
      "throwIfAborted",
    );
    same(lost.length, 1, "the number of events");
    same(lost[0]?.reason, "expired", "the reason in the event");
    same(lost[0]?.label, "sleeper", "the label in the event");
    const outcome = await lease.release();
    check(!outcome.released, "an expired lease was not released");
    same(outcome.reason, "expired", "the outcome of the release");
  }),

  conformanceCase("frees a resource when its lease expires", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const lease = await ours.acquire(resource, bench.brief);
    const next = await bench.settled("the wait", theirs.acquire(resource, { wait: "forever" }));
    same(lease.state, "lost", "the state of the first lease, now that another has it");
    same(next.state, "held", "the state of the next");
  }),

  conformanceCase("lets an expired owner do nothing to the next holder", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const old = await ours.acquire(resource, { ...bench.brief, label: "old" });
    await bench.lost(old);
    const waiting = theirs.acquire(resource, { wait: "forever", label: "new" });
    const next = await bench.settled("the wait", waiting);
    await refusal(old.extend(), "LEASE_LOST", "extend of the old lease");
    same(await old.prove(), false, "the proof of the old lease");
    same((await old.release()).released, false, "the release of the old lease");
    same((await old.release()).released, false, "its second release");
    same(await next.prove(), true, "the proof of the new lease");
    same((await theirs.inspect(resource)).label, "new", "the holder in the store");
    same(await ours.tryAcquire(resource), undefined, "a third lease on it");
    same((await next.release()).released, true, "the release of the new lease");
  }),

  conformanceCase("never brings a lost lease back", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource, bench.brief);
    await bench.lost(lease);
    await bench.until("the store frees it", async () => {
      return (await locks.inspect(resource)).state === "free";
    });
    await refusal(lease.extend(), "LEASE_LOST", "extend");
    same((await locks.inspect(resource)).state, "free", "the state in the store");
    same(lease.state, "lost", "the state of the lease");
  }),

  conformanceCase("extends a lease, here and in the store", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const ttlMs = Math.floor(bench.longTtlMs / 2);
    const lease = await locks.acquire(resource, { ttl: ttlMs });
    await lease.extend(bench.longTtlMs);
    check(lease.remainingMs() > ttlMs, "after extend more is left than the first TTL");
    check(lease.remainingMs() <= bench.longTtlMs, "but not more than the new one");
    const { remainingMs = 0 } = await locks.inspect(resource);
    check(remainingMs > ttlMs, "the store keeps it as long");
    same(lease.state, "held", "the state");
  }),

  conformanceCase("never shortens a lease by extending it", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const ttlMs = Math.floor(bench.longTtlMs / 10);
    const lease = await locks.acquire(resource);
    await lease.extend(ttlMs);
    check(lease.remainingMs() > ttlMs, "more is left than the lesser TTL");
    const { remainingMs = 0 } = await locks.inspect(resource);
    check(remainingMs > ttlMs, "the store keeps it longer than the lesser TTL");
  }),

  conformanceCase("renews a lease beyond its TTL until it is released", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const ttlMs = 3 * bench.shortTtlMs;
    let renewals = 0;
    ours.on("renewed", () => {
      renewals += 1;
    });
    const lease = await ours.acquire(resource, { ttl: ttlMs, renew: true });
    // Waits for the end of a later lease with the same TTL. The first TTL of `lease` is then over
    // as well.
    await bench.lost(await theirs.acquire(bench.resource("clock"), { ttl: ttlMs }));
    same(lease.state, "held", "the state");
    check(renewals >= 1, "it was renewed");
    same(await theirs.tryAcquire(resource), undefined, "a rival's attempt");
    same((await lease.release()).released, true, "the release");
    present(await theirs.tryAcquire(resource), "a rival's attempt after the release");
  }),

  conformanceCase("ends a renewed lease at maxHold", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const ttl = 3 * bench.shortTtlMs;
    const maxHold = 4 * bench.shortTtlMs;
    const lease = await ours.acquire(resource, { ttl, maxHold, renew: true });
    await bench.lost(lease);
    const { reason } = lease.signal;
    same(coded(reason, "LEASE_LOST", "the loss").reason, "max-hold", "the reason");
    const outcome = await lease.release();
    check(!outcome.released, "a lease that ended at maxHold was not released");
    same(outcome.reason, "max-hold", "the outcome of the release");
    await bench.settled("a rival's wait", theirs.acquire(resource, { wait: "forever" }));
  }),
];
