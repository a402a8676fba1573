import type { Lease } from "../../core/lease/lease.ts";
import { type Bench, conformanceCase } from "./bench.ts";
import { present, refusal, same, sameList } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

/**
 * Creates a case with several resources. If the store cannot lock several resources at once, the
 * case checks that it rejects such a call.
 */
function severalCase(name: string, run: (bench: Bench) => Promise<void>): ConformanceCase {
  return conformanceCase(name, async (bench) => {
    if (bench.capabilities.multiResource) return await run(bench);
    const locks = await bench.open();
    const names = [bench.resource("a"), bench.resource("b")];
    await refusal(locks.acquire(names), "UNSUPPORTED", "several resources");
    for (const name of names) same((await locks.inspect(name)).state, "free", name);
  });
}

export const several: readonly ConformanceCase[] = [
  severalCase("takes several resources at once, and frees them at once", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const names = [bench.resource("a"), bench.resource("b"), bench.resource("c")];
    const lease = await ours.acquire(names);
    for (const name of names) same(await theirs.tryAcquire(name), undefined, `a rival on ${name}`);
    same(await lease.prove(), true, "the proof");
    await lease.extend();
    same((await lease.release()).released, true, "the release");
    for (const name of names) present(await theirs.tryAcquire(name), `a rival on ${name}`);
  }),

  severalCase("takes none of several when one of them is held", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const [a, b] = [bench.resource("a"), bench.resource("b")];
    const [c, d] = [bench.resource("c"), bench.resource("d")];
    const held = await ours.acquire([b, c]);
    // One of these two sets begins with a free resource, in whatever order a store checks the
    // names.
    same(await theirs.tryAcquire([a, b]), undefined, "an overlapping set");
    same(await theirs.tryAcquire([d, c]), undefined, "another overlapping set");
    await refusal(theirs.acquire([a, c, d], { wait: 0 }), "ACQUIRE_TIMEOUT", "a third");
    for (const free of [a, d]) {
      same((await theirs.inspect(free)).state, "free", "one that is free");
      await present(await theirs.tryAcquire(free), "one that is free").release();
    }
    same(await held.prove(), true, "whether the holder still has its own");
    await held.release();
    present(await theirs.tryAcquire([a, b, c, d]), "the set, now that it is free");
  }),

  severalCase("takes duplicates once, in an order of its own", async (bench) => {
    const locks = await bench.open();
    const [a, b] = [bench.resource("a"), bench.resource("b")];
    const lease = await locks.acquire([b, a, b, b, a]);
    sameList(lease.resources, [a, b], "the resources");
    same((await lease.release()).released, true, "the release");
    const twice = await locks.acquire([a, a]);
    sameList(twice.resources, [a], "one resource, given twice");
  }),

  severalCase("lets rivals for the same set through, whatever their order", async (bench) => {
    const [ours, theirs] = [await bench.open(), await bench.open()];
    const [a, b, c] = [bench.resource("a"), bench.resource("b"), bench.resource("c")];
    const wait = "forever";
    let inside = 0;
    const work = async (lease: Lease): Promise<void> => {
      inside += 1;
      same(await lease.prove(), true, "the proof");
      same(inside, 1, "holders at once");
      inside -= 1;
    };
    const tasks = [
      [a, b],
      [b, a],
      [c, b, a],
      [b, c],
    ].flatMap((names) => [
      ours.using(names, { wait }, work),
      theirs.using(names.toReversed(), { wait }, work),
    ]);
    await bench.settled("all of them", Promise.all(tasks));
  }),
];
