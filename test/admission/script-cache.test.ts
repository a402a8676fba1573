import { expect, test } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import { fencedMode } from "../../src/stores/redis/commands/modes.ts";
import { Calls, type AcquireCall } from "../../src/stores/redis/commands/operation-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { shardOf } from "../../src/stores/redis/commands/keys.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { collect, connect, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../../tools/redis/redis-server.mjs";
import { verdictIn } from "../support/sent-operations.ts";
import { admit, everyNodeVotes, field, maxTtl, openAdmitted } from "./strict-locks.ts";

/**
 * A client sends a granting script by its SHA-1, and such a call does not check which process of
 * the server runs it. That is safe as long as a script enters the cache of a process only by a
 * call that did check it, and that took the admission away if the process was another one. These
 * tests take one server through what may happen between the two calls.
 */

const redis = shareRedis(3);
const options = resolveStoreOptions({ maxTtl }, 3);

/**
 * Returns an acquire as the client sends it: first by its SHA-1, in full if the script is unknown.
 */
function acquire(owner: string): AcquireCall {
  return new Calls(fencedMode(options)).acquire(["a"], owner, maxTtl, 1) as AcquireCall;
}

async function bySha(server: RedisServer, owner: string): Promise<string> {
  return verdictIn(await server.command(...acquire(owner).first(false)));
}

async function inFull(server: RedisServer, owner: string): Promise<string> {
  return verdictIn(await server.command(...acquire(owner).whole()));
}

/** Returns a server that restarted from a snapshot, and so forgot a lock that it had granted. */
async function backFromOldSnapshot(): Promise<RedisServer> {
  const server = redis.server(0);
  await admit(server);
  expect(await inFull(server, "first")).toMatch(/^G/);
  await server.command("DEL", "a");
  await server.command("SAVE");
  expect(await bySha(server, "holder")).toMatch(/^G/);
  await server.restart();
  expect(await server.command("GET", "a")).toBeNull();
  expect(await field(server, "st")).toBe("A");
  return server;
}

test("after a restart a script enters the cache only by a call that checks the process", async () => {
  const server = await backFromOldSnapshot();
  await expect(bySha(server, "rival")).rejects.toThrow("NOSCRIPT");
  expect(await inFull(server, "rival")).toMatch(/^B /);
  // From now on the script is cached, but the record says that the node is quarantined.
  expect(await field(server, "st")).toBe("Q");
  expect(await bySha(server, "another")).toMatch(/^B /);
  expect(await server.command("EXISTS", "a")).toBe(0);
});

test("a call without the check would grant a lock that is still held", async () => {
  // The counterexample: the argument that turns the check on is set to "0".
  const server = await backFromOldSnapshot();
  const careless = acquire("rival")
    .whole()
    .map((word, index, all) => (index === 3 + Number(all[2]) ? "0" : word));
  expect(verdictIn(await server.command(...careless))).toMatch(/^G/);
  await server.command("DEL", "a");
  // The next call is refused by the record, although the script is cached now.
  expect(await bySha(server, "another")).toMatch(/^B /);
});

test("a command that a driver sends again after the restart is refused as well", async () => {
  const server = redis.server(0);
  await admit(server);
  expect(await inFull(server, "first")).toMatch(/^G/);
  await server.command("DEL", "a");
  await server.command("SAVE");
  // ioredis sends commands in flight again as soon as it is connected to the new process.
  const connection = connectionOf(await connect(server.port));
  const other = connectionOf(await connect(server.port));
  server.pause();
  const short = connection?.send("a", acquire("short").first(false)).catch(String);
  await server.restart();
  expect(await short).toContain("NOSCRIPT");
  server.pause();
  const long = other?.send("a", acquire("long").whole());
  await server.restart();
  expect(verdictIn(await long)).toMatch(/^B /);
  expect(await field(server, "st")).toBe("Q");
  expect(await server.command("EXISTS", "a")).toBe(0);
});

test("a second client that has used the script before sees the node as blank as well", async () => {
  const first = await openAdmitted(redis);
  const second = await openAdmitted(redis);
  for (const locks of [first, second]) await (await locks.acquire("a")).release();
  const server = redis.server(0);
  await server.command("SAVE");
  await server.restart();
  expect(await inFull(server, "first client")).toMatch(/^B /);
  // The new process has cached the script by now, so the second client gets no NOSCRIPT as a
  // warning.
  const blank = collect(second, "node-blank");
  await expect
    .poll(
      async () => {
        await (await second.acquire("a", { wait: "20s" })).release();
        return blank.length;
      },
      { timeout: 20_000 },
    )
    .toBe(1);
  await everyNodeVotes(second);
});

test("an emptied script cache costs no node its vote", async () => {
  const locks = await openAdmitted(redis);
  const blank = collect(locks, "node-blank");
  await (await locks.acquire("a")).release();
  for (const server of redis.servers) {
    await server.command("SCRIPT", "FLUSH");
    expect(await inFull(server, "after the flush")).toMatch(/^G/);
    expect(await server.command("DEL", "a")).toBe(1);
  }
  for (let turn = 0; turn < 3; turn += 1) await (await locks.acquire("a")).release();
  await everyNodeVotes(locks);
  expect(blank).toEqual([]);
});

test("a flushed server is blank at once, although its script cache is full", async () => {
  const locks = await openAdmitted(redis);
  await (await locks.acquire("a")).release();
  const server = redis.server(0);
  await inFull(server, "to fill the cache");
  await server.command("FLUSHALL");
  expect(await bySha(server, "rival")).toMatch(/^B /);
  const modes = collect(locks, "node-admitted");
  const blank = collect(locks, "node-blank");
  expect((await locks.nodes())[0]).toMatchObject({ node: "node-1", admission: "quarantined" });
  expect(blank).toHaveLength(1);
  await everyNodeVotes(locks);
  expect(modes).toEqual([{ node: "node-1", mode: "copy" }]);
  const [own, other] = await Promise.all(
    [0, 1].map((index) => field(redis.server(index), String(shardOf("a")))),
  );
  expect(Number(own)).toBeGreaterThanOrEqual(Number(other));
});

test("a node can be marked as quarantined even if the server is out of memory", async () => {
  const server = await backFromOldSnapshot();
  await server.command("CONFIG", "SET", "maxmemory", "1");
  const reply = await inFull(server, "rival").catch(String);
  await server.command("CONFIG", "SET", "maxmemory", "0");
  expect(reply).toMatch(/^B /);
  // The script is in the cache now.
  expect(await server.command("SCRIPT", "EXISTS", scripts.fenced.sha)).toEqual([1]);
  expect(await bySha(server, "rival")).toMatch(/^B /);
});

test("a client with another wire format cannot make a quarantined node grant", async () => {
  const server = await backFromOldSnapshot();
  const stranger = acquire("stranger")
    .whole()
    .map((word) => (word === "1:crc16:1024" ? "2:other" : word));
  expect(verdictIn(await server.command(...stranger))).toBe("X FORMAT 1:crc16:1024");
  expect(await bySha(server, "rival")).toMatch(/^B /);
});
