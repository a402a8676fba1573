import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { NotConnectedError } from "../../src/clients/contract.ts";
import { eventually } from "../support/redis-eventually.ts";
import {
  collect,
  connect,
  openLocks,
  rejection,
  shareRedis,
  watchConnection,
} from "../support/redis-harness.ts";
import { configure } from "./findings.ts";

/** Warnings of the survey, which runs by itself: on first contact, and when a server comes back. */

const bench = shareRedis(3);
const evicting = { maxmemory: "100mb", "maxmemory-policy": "volatile-lru" };

test("a policy that can evict locks is reported once per node", async () => {
  await configure(bench.server(1), evicting);
  const locks = await bench.locks(3);
  const warnings = collect(locks, "warning");
  await (await locks.acquire("a")).release();
  await eventually(() => warnings.length > 0);
  for (let round = 0; round < 5; round += 1) await (await locks.acquire("a")).release();
  await sleep(50);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ code: "eviction", level: "warning", node: "node-2" });
  expect(warnings[0]?.what).toContain("maxmemory-policy is volatile-lru");
  expect(warnings[0]?.remedy).toContain("noeviction");
});

test("a policy without a memory limit gives no event", async () => {
  await configure(bench.server(0), { "maxmemory-policy": "volatile-lru" });
  const watched = watchConnection(await connect(bench.server(0).port));
  const locks = openLocks([watched]);
  const warnings = collect(locks, "warning");
  await (await locks.acquire("a")).release();
  await eventually(() => watched.sent.some((command) => command.join(" ") === "INFO"));
  await eventually(() => watched.unanswered === 0);
  await sleep(0);
  expect(warnings).toEqual([]);
});

test("a server that restarted is surveyed again", async () => {
  const server = bench.server(0);
  const locks = openLocks([await connect(server.port)]);
  const warnings = collect(locks, "warning");
  await (await locks.acquire("a")).release();
  const args = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-random"];
  await server.restart({ args });
  onTestFinished(() => server.restart({ args: [] }));
  await eventually(async () => {
    const lease = await locks.tryAcquire("a");
    await lease?.release();
  });
  await eventually(() => warnings.some(({ code }) => code === "eviction"));
});

test("a finding that was resolved and returns is reported again", async () => {
  const server = bench.server(0);
  const watched = watchConnection(await connect(server.port));
  const send = watched.send.bind(watched);
  let down = false;
  watched.send = (key, command) =>
    down ? Promise.reject(new NotConnectedError("test", "down")) : send(key, command);
  const locks = openLocks([watched]);
  const warnings = collect(locks, "warning");
  const looks = (): number => watched.sent.filter((command) => command.join(" ") === "INFO").length;
  /** Interrupts the connection, and resolves when the server has been surveyed again. */
  const outage = async (): Promise<void> => {
    const before = looks();
    down = true;
    await rejection(locks.acquire("a", { wait: 0 }));
    down = false;
    await (await locks.acquire("a")).release();
    await eventually(() => looks() > before && watched.unanswered === 0);
    await sleep(0);
  };
  await configure(server, evicting);
  await (await locks.acquire("a")).release();
  await eventually(() => warnings.length === 1);
  await outage();
  expect(warnings).toHaveLength(1);
  await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
  await outage();
  await server.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru");
  await outage();
  expect(warnings.map(({ code }) => code)).toEqual(["eviction", "eviction"]);
});

test("a replica used as a master is reported once, though it refuses writes as well", async () => {
  const [master, replica] = [bench.server(0), bench.server(1)];
  await replica.command("REPLICAOF", master.host, String(master.port));
  onTestFinished(async () => {
    await replica.command("REPLICAOF", "NO", "ONE");
  });
  const locks = openLocks([await connect(replica.port)]);
  const warnings = collect(locks, "warning");
  const error = await rejection(locks.acquire("a", { wait: 0 }));
  expect(String(error)).toContain("READONLY");
  await eventually(() => warnings.length > 0);
  await sleep(50);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatchObject({ code: "replica", level: "error", node: "redis" });
  expect(warnings[0]?.remedy).toContain("connect to the master");
});

test("the survey comes after the first acquire, and a failed survey has no effect", async () => {
  const client = await connect(bench.server(0).port);
  const watched = watchConnection(client);
  const send = watched.send.bind(watched);
  watched.send = async (key, command) => {
    if (command.join(" ") === "INFO") {
      watched.sent.push(command);
      throw new Error("ERR no survey today");
    }
    return await send(key, command);
  };
  const locks = openLocks([watched]);
  const failed = collect(locks, "node-failed");
  const lease = await locks.acquire("a");
  await eventually(() => watched.sent.some((command) => command.join(" ") === "INFO"));
  const order = watched.sent.map(([name, section]) =>
    section === "server" ? "INFO server" : name,
  );
  expect(order.indexOf("INFO")).toBeGreaterThan(order.indexOf("EVALSHA"));
  expect(await lease.release()).toEqual({ released: true });
  expect(failed).toEqual([]);
});
