import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { neededCommands, wakeUpCommands } from "../../src/stores/redis/doctor/probe.ts";
import * as scripts from "../../src/stores/redis/scripts/generated.ts";
import type { Locks } from "../../src/index.ts";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { everyNodeVotes, maxTtl } from "../admission/strict-locks.ts";
import { eventually } from "../support/redis-eventually.ts";
import { collect, connect, openLocks, rejection, shareRedis } from "../support/redis-harness.ts";
import { projectRoot } from "../support/source-files.ts";
import { codesOf, diagnose, findingOf } from "./findings.ts";

/** Which rights a user needs, what happens if one is missing, and that the page lists them. */

const bench = shareRedis(3);
const page = readFileSync(join(projectRoot, "docs", "operate", "operations.md"), "utf8");

/** Returns the rules of the line `ACL SETUSER <user> …` under this heading of the page. */
function rulesOf(heading: string): string[] {
  const section = page.split(`### ${heading}\n`)[1]?.split("\n#")[0] ?? "";
  const line = /^ACL SETUSER locks (on >secret .+)$/m.exec(section)?.[1];
  if (line === undefined)
    throw new Error(`docs/operate/operations.md has no such line: ${heading}`);
  return line.split(" ");
}

/** Connects clients of a user with exactly these rules to the first `count` servers. */
async function loginAs(rules: readonly string[], count: number): Promise<Redis[]> {
  const login = { username: "locks", password: "secret", enableReadyCheck: false };
  return await Promise.all(
    bench.servers.slice(0, count).map(async (server) => {
      await server.command("ACL", "SETUSER", "locks", "reset", ...rules);
      onTestFinished(async () => {
        await server.command("ACL", "DELUSER", "locks");
      });
      return await connect(server.port, login);
    }),
  );
}

/** Calls every method of a manager and a lease. `rival` waits for what `locks` holds. */
async function useEverything(
  locks: Locks,
  rival: Locks,
  resources: readonly string[],
): Promise<void> {
  const [first = ""] = resources;
  for (const names of [first, resources]) {
    const lease = await locks.acquire(names, { wait: 0 });
    expect(await lease.prove()).toBe(true);
    await lease.extend();
    expect(await locks.tryAcquire(names)).toBeUndefined();
    const waiting = rival.acquire(names, { wait: "forever" });
    await eventually(async () => {
      expect(await locks.inspect(first)).toMatchObject({ state: "held", waiters: 1 });
    });
    expect(await lease.release()).toEqual({ released: true });
    await (await waiting).release();
  }
}

async function deniedSoFar(): Promise<unknown[]> {
  const logs = await Promise.all(bench.servers.map((server) => server.command("ACL", "LOG")));
  await Promise.all(bench.servers.map((server) => server.command("ACL", "LOG", "RESET")));
  return logs.flatMap((log) => log as unknown[]);
}

describe("the least rights, as listed in docs/operate/operations.md", () => {
  const cases: readonly [string, string, number, RedisStoreOptions][] = [
    ["are enough for one node", "With fences", 1, {}],
    ["are enough for a quorum with admission", "With fences", 3, { admission: "strict", maxTtl }],
    ["are enough without fences", "Without fences", 3, { fencing: false }],
  ];

  test.each(cases)("%s", async (_, heading, count, options) => {
    await deniedSoFar();
    const clients = await loginAs(rulesOf(heading), count);
    const locks = openLocks(clients, { prefix: "lock:", ...options }, { ttl: maxTtl });
    const warnings = collect(locks, "warning");
    if (options.admission === "strict") await everyNodeVotes(locks);
    const rival = openLocks(clients, { prefix: "lock:", ...options }, { ttl: maxTtl });
    await useEverything(locks, rival, ["a", "b"]);
    expect(await deniedSoFar()).toEqual([]);
    // The survey runs in the background, and needs no other rights.
    await eventually(async () => {
      const [client] = bench.servers;
      return String(await client?.command("INFO", "commandstats")).includes("cmdstat_info");
    });
    expect(warnings.filter(({ what }) => !what.includes("admitted without"))).toEqual([]);
    const codes = await codesOf(locks);
    expect(codes).toContain("not-visible");
    expect(codes).not.toContain("permission-missing");
    expect(codes).not.toContain("info-denied");
  });

  test("do not allow commands that a lock does not need", async () => {
    const [client] = await loginAs(rulesOf("With fences"), 1);
    const refused = [
      ["SET", "elsewhere", "x"],
      ["FLUSHALL"],
      ["CONFIG", "GET", "save"],
      ["KEYS", "*"],
      ["SCRIPT", "FLUSH"],
      ["PUBLISH", "channel", "message"],
    ];
    for (const [name = "", ...args] of refused) {
      expect(String(await rejection(client?.call(name, args) ?? Promise.resolve()))).toMatch(
        /NOPERM/,
      );
    }
  });

  test("are the commands in the scripts, plus those that run scripts", () => {
    const sources = Object.values(scripts).filter(({ name }) => name !== "probe");
    const text = sources.map(({ source }) => source).join("\n");
    const run = new Set(
      [...text.matchAll(/(?:p?call\(|\{)'([A-Z]{3,})'/g)].map(([, name = ""]) => name),
    );
    const calls = [...neededCommands({ fencing: true }, false), ...wakeUpCommands(false)];
    const needed = new Set(
      [...calls, "INFO", "UNSUBSCRIBE"].map((call) => call.split(" ")[0] ?? ""),
    );
    run.delete("SPUBLISH");
    // PUBSUB only saves time.
    run.delete("PUBSUB");
    needed.add("PUBSUB|NUMSUB");
    // TYPE only makes an error clearer.
    run.delete("TYPE");
    expect([...run].filter((name) => !needed.has(name))).toEqual([]);
    const listed = rulesOf("With fences").filter((rule) => rule.startsWith("+"));
    expect(listed.map((rule) => rule.slice(1).toUpperCase()).toSorted()).toEqual(
      [...needed].toSorted(),
    );
  });
});

describe("rights that are missing", () => {
  const rules = (...without: readonly string[]) =>
    rulesOf("With fences").filter((rule) => !without.includes(rule));

  test.each(["+set", "+del", "+hset", "+pexpire", "+time", "+evalsha", "+eval"])(
    "%s is reported by the doctor before a lock needs it",
    async (rule) => {
      for (const server of bench.servers) await server.command("SCRIPT", "FLUSH");
      const locks = openLocks(await loginAs(rules(rule), 1), { prefix: "lock:" });
      const found = await locks.doctor();
      const finding = findingOf(found, "permission-missing");
      expect(finding).toMatchObject({ level: "error", node: "redis" });
      expect(finding.what.toLowerCase()).toContain(rule.slice(1));
      expect(found.map(({ code }) => code)).toContain("no-quorum");
    },
  );

  test.each(["+publish", "+subscribe", "&holdfast:*"])(
    "%s costs waiters their notifications, and the doctor reports it",
    async (rule) => {
      const locks = openLocks(await loginAs(rules(rule), 1), { prefix: "lock:" });
      const found = await locks.doctor();
      expect(findingOf(found, "no-wake-ups")).toMatchObject({ level: "warning", node: "redis" });
      expect(found.map(({ code }) => code)).not.toContain("permission-missing");
      // No waiter is notified, but none waits for ever.
      const lease = await locks.acquire("a", { ttl: "5s" });
      const next = locks.acquire("a", { ttl: "5s", wait: "10s" });
      await eventually(async () => ((await locks.inspect("a")).waiters ?? 0) > 0);
      const rival = openLocks(await loginAs(rules(rule), 1), { prefix: "lock:" });
      const last = rival.acquire("a", { ttl: "5s", wait: "10s" });
      await eventually(async () => (await locks.inspect("a")).waiters === 2);
      await lease.release();
      await (await next).release();
      await (await last).release();
    },
  );

  test("keys outside the allowed pattern are reported as well", async () => {
    const locks = openLocks(await loginAs(rules(), 1), { prefix: "other:" });
    const finding = await diagnose(locks, "permission-missing");
    expect(finding.remedy).toContain("docs/operate/operations.md");
  });

  test("without INFO locks work if admission is off, and are refused if it is strict", async () => {
    const off = openLocks(await loginAs(rules("+info"), 3), { prefix: "lock:" });
    const finding = (await off.doctor()).filter(({ code }) => code === "info-denied");
    expect(finding.map(({ level }) => level)).toEqual(["warning", "warning", "warning"]);
    expect(finding[0]?.remedy).toContain("+info");
    const strict = openLocks(await loginAs(rules("+info"), 3), {
      prefix: "lock:",
      admission: "strict",
    });
    const grave = (await strict.doctor()).filter(({ code }) => code === "info-denied");
    expect(grave.map(({ level }) => level)).toEqual(["error", "error", "error"]);
    expect(String(await rejection(strict.acquire("a")))).toContain("may not run INFO");
  });

  test("an acquire fails at once, and one event says what to do", async () => {
    const locks = openLocks(await loginAs(rules("+set"), 1), { prefix: "lock:" });
    const warnings = collect(locks, "warning");
    const attempts = collect(locks, "attempt");
    for (let round = 0; round < 2; round += 1) {
      const error = await rejection(locks.acquire("a", { wait: "30s" }));
      expect(String(error)).toContain("can't run this command");
    }
    // An acquire does not wait, because waiting would not help.
    expect(attempts).toHaveLength(2);
    const finding = warnings.filter(({ code }) => code === "permission-missing");
    expect(finding).toHaveLength(1);
    expect(finding[0]).toMatchObject({ level: "error", node: "redis" });
  });
});
