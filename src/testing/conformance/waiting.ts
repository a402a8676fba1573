import type { HoldfastError } from "../../core/errors.ts";
import type { Locks } from "../../core/locks.ts";
import { type Bench, conformanceCase } from "./bench.ts";
import { check, present, refusal, rejection, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

/** Calls `start`. Resolves when a call of `locks` has found a resource held at least once. */
async function contended(bench: Bench, locks: Locks, start: () => void): Promise<void> {
  let found = false;
  const stop = locks.on("contended", () => {
    found = true;
  });
  start();
  await bench.until("a wait finds the resource held", () => found);
  stop();
}

export const waiting: readonly ConformanceCase[] = [
  conformanceCase("gets a held resource after its release", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const held = await ours.acquire(resource);
    let waiting: ReturnType<Locks["acquire"]> | undefined;
    await contended(bench, theirs, () => {
      waiting = theirs.acquire(resource, { wait: "forever" });
    });
    same((await held.release()).released, true, "the release");
    const lease = await bench.settled("the wait", present(waiting, "the wait"));
    same(lease.state, "held", "the state");
    same(await lease.prove(), true, "the proof");
  }),

  conformanceCase("says who held the resource until the wait ended", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    await ours.acquire(resource, { label: "nightly job, 50 % | é" });
    let attempts = 0;
    theirs.on("attempt", ({ outcome }) => {
      same(outcome, "held", "the outcome of each attempt");
      attempts += 1;
    });
    const wait = 2 * bench.settleMs;
    const error = await bench.settled(
      "the wait",
      refusal(
        theirs.acquire(resource, { wait, retry: { minDelay: 1, maxDelay: 10 } }),
        "ACQUIRE_TIMEOUT",
        "a wait for a held resource",
      ),
    );
    same(error.attempts, attempts, "the attempts in the error");
    same(error.holder?.label, "nightly job, 50 % | é", "the holder's label");
    sameList(error.resources, [resource], "the resources in the error");
    check(error.waitedMs >= wait, "it waits as long as its limit");
  }),

  conformanceCase("makes one attempt when it must not wait", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    await ours.acquire(resource, { wait: 0 });
    const error = await refusal(
      theirs.acquire(resource, { wait: 0 }),
      "ACQUIRE_TIMEOUT",
      "a held resource",
    );
    same(error.attempts, 1, "the attempts");
  }),

  conformanceCase("ends a wait when its signal aborts, and leaves nothing", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const resource = bench.resource();
    const held = await ours.acquire(resource);
    const controller = new AbortController();
    const { signal } = controller;
    const reason = new Error("no longer wanted");
    let waiting: Promise<unknown> | undefined;
    await contended(bench, theirs, () => {
      waiting = rejection(theirs.acquire(resource, { wait: "forever", signal }), "the wait");
    });
    controller.abort(reason);
    same(await bench.settled("it", present(waiting, "the wait")), reason, "the rejection");
    same(await held.prove(), true, "whether the holder still has it");
    await held.release();
    const next = present(await ours.tryAcquire(resource), "a lease right after");
    await next.release();
    same((await ours.inspect(resource)).state, "free", "the state in the store");
  }),

  conformanceCase("attempts nothing for a signal that is aborted already", async (bench) => {
    const locks = await bench.open();
    let attempts = 0;
    locks.on("attempt", () => {
      attempts += 1;
    });
    const reason = new Error("never wanted");
    const signal = AbortSignal.abort(reason);
    const resource = bench.resource();
    same(await rejection(locks.acquire(resource, { signal }), "acquire"), reason, "acquire");
    same(await rejection(locks.tryAcquire(resource, { signal }), "try"), reason, "tryAcquire");
    same(attempts, 0, "the attempts");
  }),

  conformanceCase("keeps a granted lease when the wait's signal aborts later", async (bench) => {
    const locks = await bench.open();
    const controller = new AbortController();
    const lease = await locks.acquire(bench.resource(), { signal: controller.signal });
    controller.abort();
    same(lease.state, "held", "the state");
    same(await lease.prove(), true, "the proof");
  }),

  conformanceCase("ends waits with ClosedError and releases leases on close", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const [held, wanted] = [bench.resource("held"), bench.resource("wanted")];
    await ours.acquire(wanted);
    const lease = await theirs.acquire(held);
    let waiting: Promise<HoldfastError> | undefined;
    await contended(bench, theirs, () => {
      waiting = refusal(theirs.acquire(wanted, { wait: "forever" }), "CLOSED", "the wait");
    });
    await bench.settled("close", Promise.all([theirs.close(), theirs.close()]));
    await bench.settled("the wait", present(waiting, "the wait"));
    same(lease.state, "released", "the state of the lease");
    present(await ours.tryAcquire(held), "what the closed manager held");
    await theirs.close();
  }),

  conformanceCase("refuses every call after close", async (bench) => {
    const locks = await bench.open();
    const resource = bench.resource();
    await bench.settled("close", locks.close());
    await refusal(locks.acquire(resource), "CLOSED", "acquire");
    await refusal(locks.tryAcquire(resource), "CLOSED", "tryAcquire");
    await refusal(
      locks.using(resource, () => undefined),
      "CLOSED",
      "using",
    );
    await refusal(locks.inspect(resource), "CLOSED", "inspect");
    await refusal(locks.nodes(), "CLOSED", "nodes");
    await locks[Symbol.asyncDispose]();
  }),
];
