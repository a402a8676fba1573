import { expect, test } from "vitest";
import { createLocks, InvalidOptionError, UnsupportedError } from "../../src/index.ts";
import { cronCoordinator } from "../../src/schedule/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";

const at = Date.UTC(2030, 0, 1, 3);
const keyAt = (ms: number): string => `nightly: backup:${new Date(at + ms).toISOString()}`;

test("a time of a task of node-cron is run in one process, and never again", async () => {
  const { runtime, clock } = manualRuntime({ wallMs: at });
  const store = memory();
  const [ours, theirs] = [1, 2].map(() => cronCoordinator(createLocks(store, { runtime })));
  if (ours === undefined || theirs === undefined) throw new Error("no coordinator");
  const key = keyAt(0);
  expect(await ours.shouldRun(key)).toBe(true);
  expect(await theirs.shouldRun(key)).toBe(false);
  // The run is longer than the lease without renewals.
  await clock.advance(60_000);
  expect(await theirs.shouldRun(key)).toBe(false);
  expect(await theirs.shouldRun(keyAt(60_000))).toBe(false);
  await ours.onComplete(key);
  expect(await theirs.shouldRun(key)).toBe(false);
  expect(await theirs.shouldRun(keyAt(60_000))).toBe(true);
  await theirs.onComplete(keyAt(60_000));
  await theirs.onComplete(keyAt(60_000));
  expect(await ours.shouldRun(keyAt(86_400_000))).toBe(false);
  expect(clock.pendingTimers).toBe(0);
});

test("a time that was begun by a process that died is not run again", async () => {
  const { runtime, clock } = manualRuntime({ wallMs: at });
  const store = memory();
  const dead = createLocks(store, { runtime });
  expect(await cronCoordinator(dead).shouldRun(keyAt(0))).toBe(true);
  await dead.close();
  const next = cronCoordinator(createLocks(store, { runtime }));
  expect(await next.shouldRun(keyAt(0))).toBe(false);
  await clock.advance(1_000);
  expect(await next.shouldRun(keyAt(1_000))).toBe(true);
  await next.onComplete(keyAt(1_000));
});

test("a coordinator refuses wrong keys and options", async () => {
  const { runtime } = manualRuntime();
  const store = memory();
  const locks = createLocks(store, { runtime });
  for (const key of ["nightly", "nightly:3", 7 as never]) {
    await expect(cronCoordinator(locks).shouldRun(key)).rejects.toThrow(InvalidOptionError);
  }
  expect(() => cronCoordinator(locks, { ledger: {} as never })).toThrow("`ledger`");
  expect(() => cronCoordinator(locks, { ttls: 1 } as never)).toThrow("ttls");
  const capabilities = { ...store.capabilities, marks: false };
  const plain = createLocks({ ...store, capabilities }, { runtime });
  expect(() => cronCoordinator(plain)).toThrow(UnsupportedError);
});
