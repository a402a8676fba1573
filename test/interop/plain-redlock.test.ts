import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { RedisStoreOptions } from "../../src/stores/redis/index.ts";
import { shareRedis } from "../support/redis-harness.ts";
import { isAvailable } from "../support/requirements.ts";

/**
 * The lock key is the resource's name, and its value is different for every lease. Clients of
 * other libraries and languages know no more of Redlock than that, and need no more. The first
 * client to set the key keeps the others out, and no client deletes a value that is not its own.
 */

const redis = shareRedis(3);
const run = promisify(execFile);
const script = fileURLToPath(new URL("plain-redlock.py", import.meta.url));
const hasPython = isAvailable("python3", spawnSync("python3", ["--version"]).status === 0);

/** Runs a command of a client in another process and language, with another form of value. */
async function python(what: string, key: string, ...rest: readonly string[]): Promise<string> {
  const ports = redis.servers.map(({ port }) => port).join(",");
  const { stdout } = await run("python3", [script, what, ports, key, ...rest]);
  return stdout.trim();
}

const dialects: readonly (readonly [string, RedisStoreOptions])[] = [
  ["with fences", {}],
  ["without fences", { fencing: false }],
];

describe.each(dialects)("%s", (_, options) => {
  describe.skipIf(!hasPython)("and a plain Redlock client in Python", () => {
    test("Holdfast waits while the Python client holds the lock, and does not change its keys", async () => {
      const locks = await redis.locks(3, options);
      expect(await python("lock", "a", "value of another", "30000")).toBe("locked");
      expect(await locks.tryAcquire("a")).toBeUndefined();
      const { state, label, fence, nodes } = await locks.inspect("a");
      expect({ state, label, fence }).toEqual({
        state: "held",
        label: undefined,
        fence: undefined,
      });
      expect(nodes[0]?.holder?.owner).toBe("value of another");
      expect(await redis.values("a")).toEqual(Array(3).fill("value of another"));
      expect(await python("unlock", "a", "value of another")).toBe("3");
      const lease = await locks.acquire("a");
      expect(await lease.release()).toEqual({ released: true });
    });

    test("the Python client waits while Holdfast holds the lock, and does not change its keys", async () => {
      const locks = await redis.locks(3, options);
      const lease = await locks.acquire("a");
      expect(await python("lock", "a", "value of another", "30000")).toBe("refused");
      expect(await python("unlock", "a", "value of another")).toBe("0");
      expect(await lease.prove()).toBe(true);
      await lease.extend("10s");
      expect(await lease.release()).toEqual({ released: true });
      expect(await python("lock", "a", "value of another", "30000")).toBe("locked");
      expect(await python("unlock", "a", "value of another")).toBe("3");
    });

    test("both count under the same lock, and no update is lost", async () => {
      const locks = await redis.locks(3, options);
      const turns = 30;
      const counter = redis.server(0);
      const theirs = python("count", "a", String(turns), "counter");
      const ours = Array.from({ length: 2 }, async () => {
        for (let turn = 0; turn < turns / 2; turn += 1) {
          const retry = { minDelay: 1, maxDelay: 10 };
          await locks.using("a", { wait: "50s", retry }, async () => {
            const before = Number(await counter.command("GET", "counter"));
            await counter.command("SET", "counter", String(before + 1));
          });
        }
      });
      await Promise.all([...ours, theirs]);
      expect(await counter.command("GET", "counter")).toBe(String(2 * turns));
      await counter.command("DEL", "counter");
    });
  });

  test("a minority held by another client does not keep Holdfast out, and is not changed", async () => {
    const locks = await redis.locks(3, options);
    await redis.holdByForeigner([0], "a", "other|value with a bar|12x");
    const lease = await locks.acquire("a");
    const [first, ...rest] = await redis.values("a");
    expect(first).toBe("other|value with a bar|12x");
    expect(new Set(rest).size).toBe(1);
    await lease.release();
    expect(await redis.values("a")).toEqual(["other|value with a bar|12x", null, null]);
    await redis.freeByForeigner([0], "a");
  });

  test("a foreign value that looks like one of Holdfast is respected", async () => {
    const locks = await redis.locks(3, options);
    await redis.holdByForeigner([0, 1, 2], "a", "job|7");
    expect(await locks.tryAcquire("a")).toBeUndefined();
    expect(await redis.values("a")).toEqual(["job|7", "job|7", "job|7"]);
    await redis.freeByForeigner([0, 1, 2], "a");
  });

  test("a SET NX PX by hand and Holdfast exclude each other", async () => {
    const locks = await redis.locks(3, options);
    const type = async (...words: readonly string[]) => {
      const typed = redis.servers.map(({ port }) => run("redis-cli", ["-p", `${port}`, ...words]));
      return (await Promise.all(typed)).map(({ stdout }) => stdout.trim());
    };
    const lease = await locks.acquire("a");
    // A quorum has the key; the other nodes get it a moment later.
    await expect.poll(() => redis.values("a"), { timeout: 10_000 }).not.toContain(null);
    expect(await type("SET", "a", "me", "NX", "PX", "30000")).toEqual(["", "", ""]);
    await lease.release();
    expect(await type("SET", "a", "me", "NX", "PX", "30000")).toEqual(["OK", "OK", "OK"]);
    expect(await locks.tryAcquire("a")).toBeUndefined();
    expect(await type("GET", "a")).toEqual(["me", "me", "me"]);
    expect(await type("DEL", "a")).toEqual(["1", "1", "1"]);
  });
});

test("the key is the prefix plus the resource's name", async () => {
  const locks = await redis.locks(3, { prefix: "shop:" });
  await using lease = await locks.acquire("invoice:42", { label: "billing" });
  const values = await redis.values("shop:invoice:42");
  // A quorum has the key; the lease may have been granted before the third node had it.
  const kept = values.filter((value) => value !== null);
  expect(kept.length).toBeGreaterThanOrEqual(2);
  for (const value of kept) {
    expect(value).toMatch(new RegExp(String.raw`^hf:[\w-]{22}-\w+@billing\|${lease.fence}$`));
  }
  const keys = (await redis.server(values.indexOf(kept[0])).command("KEYS", "*")) as string[];
  expect(keys.sort()).toEqual(["holdfast:node", "shop:invoice:42"]);
});
