import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { LockEvents } from "../../src/core/events.ts";
import { Listeners } from "../../src/core/listeners.ts";
import type { Diagnostics } from "../../src/core/ports.ts";
import { createLocks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { scene } from "./fake-store.ts";

const event = { node: "one" };

/** Returns diagnostics that record every event and every failed listener. */
function recorder(subscribed: readonly string[] = []) {
  const published: (readonly [name: string, event: unknown])[] = [];
  const failures: unknown[] = [];
  const diagnostics: Diagnostics = {
    hasSubscribers: (name) => subscribed.includes(name),
    publish: (name, message) => published.push([name, message]),
    listenerFailed: (error) => failures.push(error),
  };
  return { diagnostics, published, failures };
}

describe("a listener", () => {
  test("receives events of its kind until it is removed", () => {
    const emitter = new Listeners<LockEvents>(recorder().diagnostics);
    const received: unknown[] = [];
    const stop = emitter.on("node-recovered", (message) => received.push(message));
    emitter.emit("node-recovered", event);
    emitter.emit("node-blank", { node: "one", why: "new" });
    stop();
    stop();
    emitter.emit("node-recovered", event);
    expect(received).toEqual([event]);
  });

  test("that was added twice receives events twice, and each is removed separately", () => {
    const emitter = new Listeners<LockEvents>(recorder().diagnostics);
    let received = 0;
    const listener = () => (received += 1);
    const stop = emitter.on("node-recovered", listener);
    emitter.on("node-recovered", listener);
    emitter.emit("node-recovered", event);
    expect(received).toBe(2);
    stop();
    emitter.emit("node-recovered", event);
    expect(received).toBe(3);
  });

  test("that throws does not affect other listeners or the lock", async () => {
    const { locks, listenerErrors } = scene();
    const error = new Error("a careless listener");
    const received: string[] = [];
    for (const name of ["attempt", "acquired", "renewed", "released"] as const) {
      locks.on(name, () => {
        throw error;
      });
      locks.on(name, () => received.push(name));
    }
    const lease = await locks.acquire("a");
    await lease.extend();
    expect(await lease.release()).toEqual({ released: true });
    expect(received).toEqual(["attempt", "acquired", "renewed", "released"]);
    expect(listenerErrors).toEqual([error, error, error, error]);
  });

  test("that throws when a lease is lost does not stop the signal from aborting", async () => {
    const { locks, clock, listenerErrors } = scene({}, { ttl: 1_000 });
    locks.on("lost", () => {
      throw new Error("a careless listener");
    });
    const lease = await locks.acquire("a");
    await clock.advance(1_000);
    expect([lease.state, lease.signal.aborted]).toEqual(["lost", true]);
    expect(listenerErrors).toHaveLength(1);
  });

  test("that throws causes a warning of the process", async () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    const locks = createLocks(memory());
    locks.on("acquired", () => {
      throw new Error("a careless listener");
    });
    await locks.acquire("a");
    await locks.close();
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining("a careless listener"), "HoldfastWarning"],
    ]);
  });
});

describe("without listeners", () => {
  test("an event is not wanted, and is not published", () => {
    const { diagnostics, published } = recorder(["node-recovered"]);
    const emitter = new Listeners<LockEvents>(diagnostics);
    expect([emitter.wants("lost"), emitter.wants("node-recovered")]).toEqual([false, true]);
    const stop = emitter.on("lost", () => undefined);
    expect(emitter.wants("lost")).toBe(true);
    stop();
    expect(emitter.wants("lost")).toBe(false);
    emitter.emit("node-blank", { node: "one", why: "new" });
    expect(published).toEqual([]);
  });

  const kinds = ["acquired", "renewed", "released"] as const;

  test.each(kinds)("no %s event is built, so the clock is read less often", async (kind) => {
    const reads = async (listen: boolean): Promise<number> => {
      const { runtime, clock } = manualRuntime();
      let count = 0;
      const counting = {
        timerSlackMs: 0,
        wallMs: () => clock.wallMs(),
        setTimer: (...args: Parameters<typeof clock.setTimer>) => clock.setTimer(...args),
        monotonicMs() {
          count += 1;
          return clock.monotonicMs();
        },
      };
      const locks = createLocks(memory(), { runtime: { ...runtime, clock: counting } });
      if (listen) locks.on(kind, () => undefined);
      const lease = await locks.acquire("a");
      await lease.extend();
      await lease.release();
      await locks.close();
      return count;
    };
    expect(await reads(true)).toBeGreaterThan(await reads(false));
  });
});

test("events are published on the diagnostics channels of the process", async () => {
  const reported: { readonly name: string; readonly message: unknown }[] = [];
  for (const name of ["holdfast:acquired", "holdfast:released"]) {
    const onMessage = (message: unknown, channel: string | symbol) =>
      reported.push({ name: String(channel), message });
    subscribe(name, onMessage);
    onTestFinished(() => void unsubscribe(name, onMessage));
  }
  const locks = createLocks(memory());
  const lease = await locks.acquire("a", { label: "reported" });
  await lease.release();
  await locks.close();
  expect(reported).toMatchObject([
    { name: "holdfast:acquired", message: { resources: ["a"], label: "reported", attempts: 1 } },
    { name: "holdfast:released", message: { resources: ["a"], released: true } },
  ]);
});
