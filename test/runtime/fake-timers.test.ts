import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mock } from "node:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { compile } from "../../scripts/build.mjs";
import { AcquireTimeoutError, createLocks, type Lease, type Locks } from "../../src/index.ts";
import { memory } from "../../src/stores/memory/index.ts";
import { manualRuntime } from "../../src/testing/index.ts";
import { rejection, shareRedis } from "../support/redis-harness.ts";

/** Replacements of time by a user's test after Holdfast was loaded, with each tool. */

const realSetTimeout = setTimeout;

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void realSetTimeout(resolve, ms));
}

interface Tool {
  install(): void;
  /** Advances the replaced time by `ms`. */
  advance(ms: number): void;
}

type Fakeable = NonNullable<NonNullable<Parameters<typeof vi.useFakeTimers>[0]>["toFake"]>;

function vitest(...toFake: Fakeable): Tool {
  return {
    install: () => void vi.useFakeTimers(toFake.length === 0 ? {} : { toFake }),
    advance: (ms) => void vi.advanceTimersByTime(ms),
  };
}

function nodeTest(...apis: ("setTimeout" | "setInterval" | "setImmediate" | "Date")[]): Tool {
  return {
    install: () => mock.timers.enable({ apis }),
    advance: (ms) => mock.timers.tick(ms),
  };
}

const timers = ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] as const;
const immediates = ["setImmediate", "clearImmediate"] as const;

const tools: Readonly<Record<string, Tool>> = {
  "vi.useFakeTimers()": vitest(),
  "vi.useFakeTimers, of the date only": vitest("Date"),
  "vi.useFakeTimers, of timers only": vitest(...timers, ...immediates),
  "vi.useFakeTimers, of the monotonic clocks only": vitest("performance", "hrtime"),
  "vi.useFakeTimers, of microtasks too, as Jest does": vitest(
    ...timers,
    ...immediates,
    "Date",
    "performance",
    "hrtime",
    "queueMicrotask",
  ),
  "mock.timers of node:test": nodeTest("setTimeout", "setInterval", "setImmediate", "Date"),
  "mock.timers of node:test, of the date only": nodeTest("Date"),
};

function toolOf(name: string): Tool {
  const tool = tools[name];
  if (tool === undefined) throw new Error(`there is no ${name}`);
  return tool;
}

afterEach(() => {
  vi.useRealTimers();
  mock.timers.reset();
});

function open(store = memory()): Locks {
  const locks = createLocks(store);
  onTestFinished(() => locks.close());
  return locks;
}

async function untilLost(lease: Lease): Promise<unknown> {
  await new Promise((resolve) => {
    lease.signal.addEventListener("abort", resolve);
  });
  return lease.signal.reason;
}

describe.each(Object.keys(tools))("under %s, Holdfast uses real time:", (name) => {
  const tool = toolOf(name);

  test("a wait ends by itself", async () => {
    const locks = open();
    await locks.acquire("a");
    tool.install();
    const error = await rejection(locks.acquire("a", { wait: 60 }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
  });

  test("a lease that is not renewed ends by itself, and so does its lock", async () => {
    const locks = open();
    tool.install();
    const lease = await locks.acquire("a", { ttl: 60 });
    expect(await untilLost(lease)).toMatchObject({ reason: "expired" });
    const next = await locks.acquire("a", { wait: "30s" });
    expect(next.fence).toBeGreaterThan(lease.fence);
  });

  test("a lease that is renewed stays held", async () => {
    const locks = open();
    tool.install();
    const renewals: unknown[] = [];
    locks.on("renewed", (event) => renewals.push(event));
    const result = await locks.using("a", { ttl: "10s", renew: 50 }, async () => {
      while (renewals.length < 3) await sleep(10);
      return "done";
    });
    expect(result).toBe("done");
  });

  test("hours of fake time end no lease, neither in the manager nor in the store", async () => {
    const store = memory();
    const [locks, others] = [open(store), open(store)];
    tool.install();
    const lease = await locks.acquire("a", { ttl: "30s" });
    tool.advance(3_600_000);
    expect([lease.state, await lease.prove()]).toEqual(["held", true]);
    expect(await others.tryAcquire("a")).toBeUndefined();
    expect((await others.inspect("a")).state).toBe("held");
    expect(await lease.release()).toEqual({ released: true });
    expect(await others.tryAcquire("a")).toBeDefined();
  });
});

describe("with the manual runtime of holdfast/testing, time moves only by its clock", () => {
  test.each(["no fake timers", ...Object.keys(tools)])("under %s", async (name) => {
    const { runtime, clock } = manualRuntime();
    const locks = createLocks(memory(), { runtime, ttl: "10s" });
    tools[name]?.install();
    const lease = await locks.acquire("a");
    const waiting = locks.acquire("a", { wait: "1m" });
    tools[name]?.advance(3_600_000);
    expect(lease.state).toBe("held");
    await clock.advance(10_000);
    expect(lease.state).toBe("lost");
    await clock.advance(1_000);
    expect((await waiting).state).toBe("held");
    await locks.close();
  });
});

describe("on a server, waits and leases use real time", () => {
  const redis = shareRedis(1);

  test.each(["vi.useFakeTimers()", "mock.timers of node:test"])("under %s", async (name) => {
    const locks = await redis.locks(1);
    const tool = toolOf(name);
    await redis.warmUp(locks);
    tool.install();
    const lease = await locks.acquire("a", { ttl: "20s" });
    const error = await rejection(locks.acquire("a", { wait: 60 }));
    expect(error).toBeInstanceOf(AcquireTimeoutError);
    tool.advance(3_600_000);
    expect([lease.state, await lease.prove()]).toEqual(["held", true]);
    expect(await lease.release()).toEqual({ released: true });
  });
});

describe("loaded after time was replaced", () => {
  const dateThatStandsStill = `globalThis.Date = class extends Date { static now() { return 5; } }`;

  test.each([
    ["warns where timers are fake", `mock.timers.enable({ apis: ["setTimeout", "Date"] })`, true],
    ["does without the date where only that is", dateThatStandsStill, false],
  ])("Holdfast %s", (_name, install, warns) => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-fakes-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    compile(join(folder, "dist"), ["--noCheck", "--declaration", "false"]);
    const script = `
      import { mock } from "node:test";
      ${install};
      const { createLocks } = await import("./dist/index.js");
      const { memory } = await import("./dist/stores/memory/index.js");
      const { wallMs } = await import("./dist/runtime/real-time.js");
      const locks = createLocks(memory());
      const lease = await locks.acquire("a");
      console.log(lease.state, wallMs() > 1e12);
      await locks.close();`;
    writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
    writeFileSync(join(folder, "script.js"), script);
    const { stdout, stderr } = spawnSync(process.execPath, ["script.js"], {
      cwd: folder,
      encoding: "utf8",
      timeout: 60_000,
    });
    expect(stdout.trim()).toBe("held true");
    const warning = "HoldfastWarning: Holdfast was loaded while fake timers were installed";
    expect(stderr.includes(warning)).toBe(warns);
  });
});
