import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { appliedInRedis } from "../../faults/applied-writes.ts";
import { redisRegister } from "../../faults/client/registers.ts";
import { compileClockLibrary } from "../../faults/clock-library.ts";
import { beginOnNode, beginOnNodes } from "../../faults/node-faults.ts";
import { NodeServer } from "../../faults/node-server.ts";
import type { PlannedFault } from "../../faults/plan.ts";
import { ShiftedClock } from "../../faults/shifted-clock.ts";
import { FenceRejectedError } from "../../src/index.ts";
import { watchLeaks } from "../support/leaks.ts";
import { required } from "../support/requirements.ts";
import { projectRoot } from "../support/source-files.ts";

watchLeaks();

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-faults-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function startServer(folder: string, clockLibrary?: string): Promise<NodeServer> {
  const server = await NodeServer.start(folder, clockLibrary);
  onTestFinished(() => server.kill());
  return server;
}

test("a server restarts with its data or without it", async () => {
  const server = await startServer(makeFolder());
  await server.command("SET", "key", "value");
  await server.kill();
  await server.restart("kept");
  expect(await server.command("GET", "key")).toBe("value");
  await server.restart("empty");
  expect(await server.command("GET", "key")).toBeNull();
});

test("a server with much data is ready when it has loaded the data", async () => {
  const server = await startServer(makeFolder());
  const fill = "for n = 1, 200000 do redis.call('SET', 'key' .. n, n) end";
  await server.command("EVAL", fill, "0");
  await server.restart("kept");
  expect(await server.command("DBSIZE")).toBe(200_000);
});

test("the clock of a running server can be stepped, and back", async (context) => {
  const folder = makeFolder();
  const library = required(context, "gcc", compileClockLibrary(projectRoot, folder));
  const server = await startServer(folder, library);
  const aheadMs = async (): Promise<number> => {
    const [seconds] = (await server.command("TIME")) as [string];
    return Number(seconds) * 1_000 - Date.now();
  };
  await server.command("SET", "key", "value", "PX", "30000");
  server.setClock(-60_000);
  expect(await aheadMs()).toBeLessThan(-58_000);
  expect(Number(await server.command("PTTL", "key"))).toBeGreaterThan(80_000);
  server.setClock(60_000);
  expect(await aheadMs()).toBeGreaterThan(58_000);
  expect(await server.command("GET", "key")).toBeNull();
  server.setClock(0);
  expect(Math.abs(await aheadMs())).toBeLessThan(2_000);
});

const planned: PlannedFault = {
  id: 1,
  kind: "busy",
  atMs: 0,
  durationMs: 20_000,
  nodes: [0],
  links: [],
  amountMs: 20,
  onHeal: "deliver",
  policy: "allkeys-lru",
  scriptEnd: "killed",
};

test("a busy server refuses every command until its script is killed", async () => {
  const server = await startServer(makeFolder());
  const heal = await beginOnNode(server, planned);
  await expect.poll(() => server.command("GET", "key").catch(String)).toMatch("BUSY");
  await heal();
  expect(await server.command("SET", "key", "value")).toBe("OK");
});

test("a long script ends by itself", async () => {
  const server = await startServer(makeFolder());
  const fault = { ...planned, durationMs: 300, scriptEnd: "by itself" } as const;
  const heal = await beginOnNode(server, fault);
  await expect.poll(() => server.command("GET", "key").catch(String)).toMatch("BUSY");
  await expect.poll(() => server.command("GET", "key").catch(String)).toBeNull();
  await heal();
});

test("a server whose saves fail refuses writes until they succeed, more than once", async () => {
  const server = await startServer(makeFolder());
  for (const value of ["one", "two"]) {
    const heal = await beginOnNode(server, { ...planned, kind: "misconf" });
    await expect(server.command("SET", "key", value)).rejects.toThrow("MISCONF");
    await heal();
    expect(await server.command("SET", "key", value)).toBe("OK");
  }
});

test.each([
  ["kill-connections", "normal"],
  ["kill-subscribers", "pubsub"],
] as const)("%s ends connections of that type again and again", async (kind, type) => {
  const server = await startServer(makeFolder());
  // The library subscribes again without a handler, and a kill meanwhile rejects that promise.
  const options = { retryStrategy: () => 1, autoResubscribe: false };
  const client = new Redis({ port: server.port, host: "127.0.0.1", ...options });
  client.on("error", () => undefined);
  onTestFinished(() => client.disconnect());
  let closed = 0;
  client.on("close", () => {
    closed += 1;
  });
  if (type === "pubsub") {
    await client.subscribe("channel");
    client.on("ready", () => void client.subscribe("channel").catch(() => undefined));
  } else {
    await client.ping();
  }
  const heal = await beginOnNodes([server], { ...planned, kind });
  await expect.poll(() => closed).toBeGreaterThan(2);
  await heal();
});

test("a client process can have a wall clock wrong by years, with a right monotonic clock", (context) => {
  const folder = makeFolder();
  const library = required(context, "gcc", compileClockLibrary(projectRoot, folder));
  const clock = new ShiftedClock(library, join(folder, "clock-offset"));
  const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
  const threeYearsMs = 3 * 365 * 24 * 3_600_000;
  for (const offsetMs of [threeYearsMs, -60_000]) {
    clock.set(offsetMs);
    const before = { wallMs: Date.now(), monotonicMs: monotonicMs() };
    const program = "console.log(Date.now() + ' ' + Number(process.hrtime.bigint()) / 1e6)";
    const { stdout } = spawnSync(process.execPath, ["-e", program], { env: clock.env });
    const [wallMs = 0, childMs = 0] = String(stdout).split(" ").map(Number);
    expect(wallMs - offsetMs).toBeGreaterThanOrEqual(before.wallMs);
    expect(wallMs - offsetMs).toBeLessThanOrEqual(Date.now());
    // The monotonic clock is not shifted.
    expect(childMs).toBeGreaterThan(before.monotonicMs);
    expect(childMs).toBeLessThan(monotonicMs());
  }
});

test("the append-only file lists the writes that a register's server applied, with their fences", async () => {
  const server = await startServer(makeFolder());
  const client = new Redis({ port: server.port, host: "127.0.0.1" });
  onTestFinished(() => client.disconnect());
  const plain = redisRegister(client, "redis");
  const guarded = redisRegister(client, "redis-fenced");
  const lease = (fence: bigint): { fence: bigint; resources: string[] } => {
    return { fence, resources: ["r"] };
  };
  await plain.write("r", undefined, await plain.read("r", undefined), "a");
  const old = await guarded.read("r", lease(5n));
  await guarded.write("r", lease(5n), old, "b");
  const read = await guarded.read("r", lease(7n));
  // Claimed by a later holder's read: the older holder can no longer write.
  await expect(guarded.write("r", lease(5n), read, "c")).rejects.toThrow(FenceRejectedError);
  await expect(guarded.read("r", lease(6n))).rejects.toThrow(FenceRejectedError);
  await guarded.write("r", lease(7n), read, "d");
  expect(appliedInRedis(server.appendOnlyFiles())).toEqual([
    { register: "redis", resource: "r", n: 1, op: "a", base: "origin" },
    {
      register: "redis-fenced",
      resource: "r",
      n: 1,
      op: "b",
      base: "origin",
      fence: 5n,
      fenceBefore: 5n,
    },
    {
      register: "redis-fenced",
      resource: "r",
      n: 2,
      op: "d",
      base: "b",
      fence: 7n,
      fenceBefore: 7n,
    },
  ]);
});
