import { expect, test } from "vitest";
import { connectionOf } from "../../src/clients/recognise.ts";
import { fencedDialect } from "../../src/stores/redis/fenced-dialect.ts";
import type { ScriptCall } from "../../src/stores/redis/node-call.ts";
import { resolveStoreOptions } from "../../src/stores/redis/options.ts";
import { shardOf } from "../../src/stores/redis/quorum/shards.ts";
import type { AcquireReply } from "../../src/stores/redis/replies.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import { collect, connect, shareRedis } from "../support/redis-harness.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { admit, everyNodeVotes, field, maxTtl, openAdmitted } from "./strict-locks.ts";

/**
 * A script that grants is sent by its SHA-1 and then does not ask which process it runs in. That is
 * enough as long as it can enter a process's cache only through a call that did ask, and that took
 * the admission away if the answer was another one. These tests take one server through what may
 * happen between the two.
 */

const redis = shareRedis(3);
const options = resolveStoreOptions({ maxTtl }, 3);

/** An acquire as the client sends it: first by its SHA-1, and in full when that is not known. */
function acquire(owner: string): ScriptCall<AcquireReply> {
  return fencedDialect(options).acquire(["a"], owner, maxTtl, 1) as ScriptCall<AcquireReply>;
}

async function bySha(server: RedisServer, owner: string): Promise<string> {
  return String(await server.command(...acquire(owner).first(false)));
}

async function inFull(server: RedisServer, owner: string): Promise<string> {
  return String(await server.command(...acquire(owner).whole()));
}

/** The server as it was before it granted a lock of which it knows nothing now. */
async function backFromOldSnapshot(): Promise<RedisServer> {
  const server = redis.server(0);
  await admit(server);
  expect(await inFull(server, "first")).toMatch(/^G /);
  await server.command("DEL", "a");
  await server.command("SAVE");
  expect(await bySha(server, "holder")).toMatch(/^G /);
  await server.restart();
  expect(await server.command("GET", "a")).toBeNull();
  expect(await field(server, "st")).toBe("A");
  return server;
}

test("after a restart a script enters the cache only by a call that looks where it is", async () => {
  const server = await backFromOldSnapshot();
  await expect(bySha(server, "rival")).rejects.toThrow("NOSCRIPT");
  expect(await inFull(server, "rival")).toMatch(/^B /);
  // From now on the short form is known to everybody, and the record says no.
  expect(await field(server, "st")).toBe("Q");
  expect(await bySha(server, "another")).toMatch(/^B /);
  expect(await server.command("EXISTS", "a")).toBe(0);
});

test("a call that does not look would grant what is still held", async () => {
  // The rule taken out: told not to look.
  const server = await backFromOldSnapshot();
  const careless = acquire("rival")
    .whole()
    .map((word, index, all) => (index === 3 + Number(all[2]) ? "0" : word));
  expect(String(await server.command(...careless))).toMatch(/^G /);
  await server.command("DEL", "a");
  // Whoever follows it is not misled by a script that somebody else left in the cache.
  expect(await bySha(server, "another")).toMatch(/^B /);
});

test("a command that a driver sends again after the restart finds the same closed door", async () => {
  const server = redis.server(0);
  await admit(server);
  expect(await inFull(server, "first")).toMatch(/^G /);
  await server.command("DEL", "a");
  await server.command("SAVE");
  // ioredis sends what was in flight again, as soon as it is connected to the new process.
  const connection = connectionOf(await connect(server.port));
  const other = connectionOf(await connect(server.port));
  server.pause();
  const short = connection?.send("a", acquire("short").first(false)).catch(String);
  await server.restart();
  expect(await short).toContain("NOSCRIPT");
  server.pause();
  const long = other?.send("a", acquire("long").whole());
  await server.restart();
  expect(await long).toMatch(/^B /);
  expect(await field(server, "st")).toBe("Q");
  expect(await server.command("EXISTS", "a")).toBe(0);
});

test("a second client that has long known the script meets the verdict of the first", async () => {
  const first = await openAdmitted(redis);
  const second = await openAdmitted(redis);
  for (const locks of [first, second]) await (await locks.acquire("a")).release();
  const server = redis.server(0);
  await server.command("SAVE");
  await server.restart();
  expect(await inFull(server, "first client")).toMatch(/^B /);
  // The second client's SHA-1 is known to the new process by now: there is no NOSCRIPT to warn it.
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

test("an emptied script cache costs nobody a vote", async () => {
  const locks = await openAdmitted(redis);
  const blank = collect(locks, "node-blank");
  await (await locks.acquire("a")).release();
  for (const server of redis.servers) {
    await server.command("SCRIPT", "FLUSH");
    expect(await inFull(server, "after the flush")).toMatch(/^G /);
    expect(await server.command("DEL", "a")).toBe(1);
  }
  for (let turn = 0; turn < 3; turn += 1) await (await locks.acquire("a")).release();
  await everyNodeVotes(locks);
  expect(blank).toEqual([]);
});

test("a flushed server is blank at once, though its script cache is full", async () => {
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

test("what was seen can be written down also where no memory is left", async () => {
  const server = await backFromOldSnapshot();
  await server.command("CONFIG", "SET", "maxmemory", "1");
  const told = await inFull(server, "rival").catch(String);
  await server.command("CONFIG", "SET", "maxmemory", "0");
  expect(told).toMatch(/^B /);
  // It is in the cache now.
  expect(await server.command("SCRIPT", "EXISTS", scripts.acquire.sha)).toEqual([1]);
  expect(await bySha(server, "rival")).toMatch(/^B /);
});

test("a client of another format cannot open the door for others", async () => {
  const server = await backFromOldSnapshot();
  const stranger = acquire("stranger")
    .whole()
    .map((word) => (word === "1:crc16:1024" ? "2:other" : word));
  expect(await server.command(...stranger)).toBe("X FORMAT 1:crc16:1024");
  expect(await bySha(server, "rival")).toMatch(/^B /);
});
