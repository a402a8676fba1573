import type { Locks } from "../../core/locks.ts";
import type { LockOptions } from "../../core/options.ts";
import { type Bench, conformanceCase } from "./bench.ts";
import { refusal, same } from "./check.ts";
import type { ConformanceCase } from "./harness.ts";

type Bad = readonly [option: string, options: object];

function badOptions(maxTtlMs: number): readonly Bad[] {
  const ttls = [0, -1, Number.NaN, 1.5, 9, Infinity, maxTtlMs + 1, "0s", "-1s", "20.5ms", "100"];
  const waits = [-1, Number.NaN, 0.5, Infinity, "soon", null];
  return [
    ...[...ttls, "ten seconds", null, {}, true].map((ttl): Bad => ["ttl", { ttl }]),
    ...waits.map((wait): Bad => ["wait", { wait }]),
    ...[0, -1, Number.NaN, 10.5, "forever"].map((maxHold): Bad => ["maxHold", { maxHold }]),
    ...["yes", 0, -1, 0.5, maxTtlMs, null].map((renew): Bad => ["renew", { renew }]),
    ...[5, "x".repeat(201), "\ud800", null].map((label): Bad => ["label", { label }]),
    ["retry", { retry: 5 }],
    ["retry.minDelay", { retry: { minDelay: 0 } }],
    ["retry.maxDelay", { retry: { minDelay: 20, maxDelay: 10 } }],
    ["delay", { retry: { delay: 5 } }],
    ["timeout", { timeout: 5 }],
    ["TTL", { TTL: 1_000 }],
  ];
}

const badResources: readonly unknown[] = [
  "",
  [],
  [""],
  5,
  null,
  undefined,
  {},
  ["a", 5],
  "x".repeat(4_097),
  "lone \ud800",
  Array.from({ length: 257 }, (_, index) => `name ${index}`),
];

async function refused(option: string, call: PromiseLike<unknown>, what: string): Promise<void> {
  const error = await refusal(call, "INVALID_OPTION", what);
  same(error.option, option, `the option that the error for ${what} names`);
}

/** Returns a manager, and a check that it has made no attempt. */
async function watched(bench: Bench): Promise<{ locks: Locks; untouched: () => void }> {
  const locks = await bench.open();
  let attempts = 0;
  locks.on("attempt", () => {
    attempts += 1;
  });
  return { locks, untouched: () => same(attempts, 0, "attempts with bad input") };
}

export const badInput: readonly ConformanceCase[] = [
  conformanceCase("names a bad option before anything is sent", async (bench) => {
    const { locks, untouched } = await watched(bench);
    const resource = bench.resource();
    for (const [option, options] of badOptions(bench.maxTtlMs)) {
      const [name, value] = Object.entries(options)[0] ?? [];
      const what = `${name}: ${String(value)}`;
      await refused(option, locks.acquire(resource, options), what);
      const work = locks.using(resource, options as LockOptions, () => "never");
      await refused(option, work, what);
      await refused(option, locks.tryAcquire(resource, options), what);
      await refused(option, bench.openWith(options), `default ${what}`);
    }
    const signal = {} as AbortSignal;
    await refused("signal", locks.acquire(resource, { signal }), "a signal that is none");
    await refused("wait", locks.tryAcquire(resource, { wait: 5 }), "a wait that cannot be");
    await refused("options", locks.acquire(resource, [] as LockOptions), "a list of options");
    const without = locks.using(resource, undefined as never);
    await refused("work", without, "no work");
    untouched();
  }),

  conformanceCase("names a bad resource before anything is sent", async (bench) => {
    const { locks, untouched } = await watched(bench);
    for (const bad of badResources) {
      const resource = bad as string;
      const what = `the resource ${JSON.stringify(bad)?.slice(0, 40)}`;
      await refused("resource", locks.acquire(resource), what);
      await refused("resource", locks.tryAcquire(resource), what);
      const work = locks.using(resource, () => "never");
      await refused("resource", work, what);
      await refused("resource", locks.inspect(resource), what);
    }
    const list = [bench.resource()] as unknown as string;
    await refused("resource", locks.inspect(list), "a list to inspect");
    untouched();
  }),

  conformanceCase("keeps a lease whose extension was asked for wrongly", async (bench) => {
    const locks = await bench.open();
    const lease = await locks.acquire(bench.resource());
    for (const ttl of [0, -1, Number.NaN, 20.5, bench.maxTtlMs + 1, "soon" as never]) {
      await refused("ttl", lease.extend(ttl), `extend(${ttl})`);
    }
    same(lease.state, "held", "the state");
    same(await lease.prove(), true, "the proof");
  }),
];
