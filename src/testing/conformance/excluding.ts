import { settle } from "../manual-clock.ts";
import { conformanceCase } from "./bench.ts";
import { check, coded, present, refusal, same, sameList, thrown } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

const taskCount = 100;
const managerCount = 4;

export const excluding: readonly ConformanceCase[] = [
  conformanceCase("gives a resource to one manager at a time", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const first = await ours.acquire(resource);
    same(first.state, "held", "the state of a new lease");
    check(first.remainingMs() > 0, "a new lease has time left");
    check(first.remainingMs() <= bench.longTtlMs, "a lease never has more time left than its TTL");
    same(await theirs.tryAcquire(resource), undefined, "tryAcquire of another manager");
    same(await ours.tryAcquire(resource), undefined, "tryAcquire of the same manager");
    same((await first.release()).released, true, "the release");
    const second = present(await theirs.tryAcquire(resource), "tryAcquire after the release");
    same(await ours.tryAcquire(resource), undefined, "tryAcquire of the one who had it");
    same((await second.release()).released, true, "the second release");
  }),

  conformanceCase("keeps different resources apart", async (bench) => {
    const locks = await bench.open();
    const names = ["a", "b", "aa", "a:b", "A"].map((suffix) => bench.resource(suffix));
    const leases = await Promise.all(names.map((name) => locks.tryAcquire(name)));
    for (const [index, lease] of leases.entries()) {
      sameList(present(lease, "each of them").resources, [names[index]], "its resources");
    }
  }),

  conformanceCase("lets only one of many simultaneous attempts through", async (bench) => {
    const managers = await Promise.all([bench.open(), bench.open(), bench.open()]);
    const resource = bench.resource();
    for (let turn = 0; turn < 5; turn += 1) {
      const attempts = await Promise.all(
        managers.flatMap((locks) => [locks.tryAcquire(resource), locks.tryAcquire(resource)]),
      );
      const granted = attempts.filter((lease) => lease !== undefined);
      check(granted.length <= 1, `${granted.length} attempts were granted at once`);
      await Promise.all(granted.map((lease) => lease.release()));
    }
  }),

  conformanceCase(`never lets two of ${taskCount} tasks in at once`, async (bench) => {
    // Uses long pauses. With short ones the attempts of all tasks would keep the store busy.
    const retry = { minDelay: 20, maxDelay: 300 };
    const opening = Array.from({ length: managerCount }, () => bench.open({ retry }));
    const managers = await Promise.all(opening);
    const resource = bench.resource();
    const wait = "forever";
    let inside = 0;
    let done = 0;
    const tasks = Array.from({ length: taskCount }, async (_, index) => {
      const locks = present(managers[index % managerCount], "a manager");
      await locks.using(resource, { wait }, async () => {
        inside += 1;
        await settle();
        same(inside, 1, "tasks inside at once");
        await settle();
        inside -= 1;
        done += 1;
      });
    });
    await bench.settled("all tasks", Promise.all(tasks));
    same(done, taskCount, "tasks done");
  }),

  conformanceCase("releases once, and returns the same outcome again", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const lease = await ours.acquire(resource);
    const [one, other] = await Promise.all([lease.release(), lease.release()]);
    const rival = present(await theirs.tryAcquire(resource), "a rival after the release");
    const third = await lease.release();
    for (const outcome of [one, other, third]) same(outcome.released, true, "each outcome");
    same(await rival.prove(), true, "whether the rival still has it");
  }),

  conformanceCase("refuses the use of a released lease", async (bench) => {
    const locks = await bench.open();
    const lease = await locks.acquire(bench.resource());
    await lease.release();
    same(lease.state, "released", "the state");
    same(lease.remainingMs(), 0, "the time left");
    same(lease.signal.aborted, false, "whether the signal reports a loss");
    coded(
      thrown(() => lease.assertHeld(), "assertHeld"),
      "LEASE_RELEASED",
      "assertHeld",
    );
    await refusal(lease.extend(), "LEASE_RELEASED", "extend");
    await refusal(lease.prove(), "LEASE_RELEASED", "prove");
  }),

  conformanceCase("releases at the end of an `await using` scope", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    const lease = await locks.acquire(resource);
    await lease[Symbol.asyncDispose]();
    same(lease.state, "released", "the state");
    present(await locks.tryAcquire(resource), "another lease on it");
  }),

  conformanceCase("proves a lease that is held", async (bench) => {
    const locks = await bench.open();
    const lease = await locks.acquire(bench.resource());
    same(await lease.prove(), true, "the proof");
    same(lease.state, "held", "the state");
    lease.assertHeld();
  }),
];
