import { getEventListeners } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import type { AttemptOutcome } from "../../src/core/store.ts";
import { settle } from "../../src/testing/index.ts";
import { scene } from "./fake-store.ts";

const held: AttemptOutcome = { kind: "held", holder: undefined, cleanup: undefined };
const reason = new Error("the service shuts down");

/** Collects the names of the warnings that the process emits from now on. */
function collectWarnings(): string[] {
  const names: string[] = [];
  const note = (warning: Error): void => void names.push(warning.name);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  return names;
}

function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length;
}

async function reasonsOf(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((one) => (one.status === "rejected" ? one.reason : undefined));
}

test("fifty calls on one signal add one listener, print no warning, and all end on abort", async () => {
  const warnings = collectWarnings();
  const { locks, clock } = scene({ attempt: async () => held });
  const { signal, ...controller } = withAbort();
  const calls = Array.from({ length: 50 }, (_, index) => {
    return locks.acquire(`job:${index % 25}`, { wait: "forever", signal });
  });
  const settled = reasonsOf(calls);
  await clock.advance(1_000);
  expect(listenersOf(signal)).toBe(1);
  controller.abort();
  expect(await settled).toEqual(calls.map(() => reason));
  expect(listenersOf(signal)).toBe(0);
  await settle();
  expect(warnings).toEqual([]);
  await locks.close();
});

test("the listener stays while one call on the signal is left, and is removed with the last", async () => {
  const { locks, clock } = scene({
    async attempt({ resources, owner, ttlMs }) {
      if (resources[0] !== "free" || clock.monotonicMs() < 500) return held;
      return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
    },
  });
  const { signal, ...controller } = withAbort();
  const first = locks.acquire("free", { wait: "forever", signal });
  const second = reasonsOf([locks.acquire("held", { wait: "forever", signal })]);
  await clock.advance(2_000);
  await (await first).release();
  expect(listenersOf(signal)).toBe(1);
  controller.abort();
  expect(await second).toEqual([reason]);
  expect(listenersOf(signal)).toBe(0);
  await locks.close();
});

test("calls that were granted leave no listener on their signal", async () => {
  const { locks } = scene();
  const { signal } = new AbortController();
  for (let index = 0; index < 3; index += 1) {
    const [one, two] = await Promise.all([
      locks.acquire("one", { signal }),
      locks.tryAcquire("two", { signal }),
    ]);
    expect(listenersOf(signal)).toBe(0);
    await Promise.all([one.release(), two?.release()]);
  }
  await locks.close();
});

test("calls under the signal of a lease share one listener, and end with its loss", async () => {
  const warnings = collectWarnings();
  const { locks, clock } = scene({
    async attempt({ resources, owner, ttlMs }) {
      if (resources[0] !== "outer") return held;
      return { kind: "granted", grant: { resources, owner, fence: 1n, validityMs: ttlMs } };
    },
  });
  const lease = await locks.acquire("outer", { ttl: "5s" });
  const { signal } = lease;
  const inner = Array.from({ length: 12 }, (_, index) => {
    return locks.using(`inner:${index}`, { wait: "forever", signal }, () => "never");
  });
  const reasons = reasonsOf(inner);
  await clock.advance(4_000);
  expect(listenersOf(signal)).toBe(1);
  await clock.advance(2_000);
  expect(await reasons).toEqual(inner.map(() => signal.reason));
  expect(signal.reason).toMatchObject({ code: "LEASE_LOST" });
  expect(listenersOf(signal)).toBe(0);
  expect(warnings).toEqual([]);
  await locks.close();
});

function withAbort(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort(reason) };
}
