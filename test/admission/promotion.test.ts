import { afterAll, beforeAll, expect, test } from "vitest";
import { fencedMode } from "../../src/stores/redis/commands/modes.ts";
import { Calls, type AcquireCall } from "../../src/stores/redis/commands/operation-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { eventually } from "../support/redis-eventually.ts";
import { type RedisServer, startRedis } from "../../tools/redis/redis-server.mjs";
import { verdictIn } from "../support/sent-operations.ts";
import { admit, field, maxTtl } from "./strict-locks.ts";

const call = (owner: string) =>
  new Calls(fencedMode(resolveStoreOptions({ maxTtl }, 3))).acquire(
    ["a"],
    owner,
    maxTtl,
    1,
  ) as AcquireCall;
let m1: RedisServer;
let m2: RedisServer;
beforeAll(async () => {
  const args = ["--repl-diskless-sync-delay", "0"];
  m1 = await startRedis({ args });
  m2 = await startRedis({ args });
});
afterAll(async () => {
  await m1.stop();
  await m2.stop();
});
const follow = async (replica: RedisServer, master: RedisServer): Promise<void> => {
  await replica.command("REPLICAOF", "127.0.0.1", String(master.port));
  await eventually(async () =>
    String(await replica.command("INFO", "replication")).includes("master_link_status:up"),
  );
};

/**
 * A replica caches a script that it refused to run, so a cached script proves nothing about its
 * data.
 */
test("a replica that received a request too early does not vote when it is promoted", async () => {
  await admit(m1);
  await follow(m2, m1);
  await expect(m2.command(...call("x").whole())).rejects.toThrow("READONLY");
  await m2.command("REPLICAOF", "NO", "ONE");
  expect(await field(m2, "st")).toBe("A");
  expect(verdictIn(await m2.command(...call("y").first(false)))).toMatch(/^B /);
});
test("a server that refused its first write does not vote on a record of another process", async () => {
  await m2.command("SCRIPT", "FLUSH");
  await m2.command("FLUSHALL");
  await admit(m2);
  await m2.command("HSET", "holdfast:node", "rid", "ffff");
  await m2.command("CONFIG", "SET", "min-replicas-to-write", "1");
  await expect(m2.command(...call("x").whole())).rejects.toThrow("NOREPLICAS");
  await m2.command("CONFIG", "SET", "min-replicas-to-write", "0");
  expect(verdictIn(await m2.command(...call("y").first(false)))).toMatch(/^B /);
});
test("a former master that followed its successor does not vote when it is promoted again", async () => {
  for (const s of [m1, m2]) {
    await s.command("SCRIPT", "FLUSH");
    await s.command("FLUSHALL");
  }
  await admit(m1);
  expect(verdictIn(await m1.command(...call("first").whole()))).toMatch(/^G/);
  await m1.command("DEL", "a");
  // m2 is the master now. m1 follows it, is resynchronised, and keeps its script cache.
  await admit(m2);
  await follow(m1, m2);
  await m1.command("REPLICAOF", "NO", "ONE");
  expect(await field(m1, "rid")).toBe(await field(m2, "rid"));
  expect(verdictIn(await m1.command(...call("rival").first(false)))).toMatch(/^B /);
});
