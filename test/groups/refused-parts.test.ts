import { describe, expect, onTestFinished, test } from "vitest";
import type { RedisClient } from "../../src/clients/redis-client.ts";
import { createLocks, HoldfastError, InvalidOptionError, type Locks } from "../../src/index.ts";
import { Rendezvous } from "../../src/stores/redis/groups/rendezvous.ts";
import { redlockGroups } from "../../src/stores/redis/index.ts";
import { collect, rejection, shareRedis, watchConnection } from "../support/redis-harness.ts";
import { clientsOf, nameOf, openGroups } from "./group-locks.ts";

const redis = shareRedis(6);
const two = [
  [0, 1, 2],
  [3, 4, 5],
];
const ids = ["1", "2"];
const ours = nameOf("1", ids);
const other = nameOf("2", ids);

/** Returns the indices of the servers that have the key. */
async function places(key: string): Promise<number[]> {
  const values = await redis.values(key);
  return values.flatMap((value, index) => (value === null ? [] : [index]));
}

/** Returns a reserved name, which no client may lock, with group `id` as its home. */
function reservedOf(id: string): string {
  const rendezvous = new Rendezvous(ids);
  const names = Array.from({ length: 100 }, (_, n) => `holdfast:job-${n}`);
  return names.find((name) => ids[rendezvous.homeOf(name)] === id) ?? "";
}

describe("a lock on resources of both groups that the second group does not grant", () => {
  const key = (name: string): string => `lock:${name}`;

  /** Opens a manager whose connections to the second group are wrapped. */
  async function openSpoiled(wrap: (client: RedisClient) => RedisClient): Promise<Locks> {
    const [first = [], second = []] = await Promise.all(two.map((some) => clientsOf(redis, some)));
    const store = redlockGroups([first, second.map(wrap)], {
      admission: "off",
      nodeTimeout: "5s",
    });
    const locks = createLocks(store, { ttl: "20s" });
    onTestFinished(() => locks.close());
    return locks;
  }

  test.each([
    ["a name that is reserved", { prefix: "" }, reservedOf("2")],
    ["a prefix that is reserved", { prefix: "holdfast:" }, other],
  ])("is refused for %s before anything is sent", async (_what, options, refused) => {
    const locks = await openGroups(redis, two, options);
    for (const call of [
      () => locks.acquire([ours, refused]),
      () => locks.tryAcquire([refused, ours]),
      () => locks.using([refused, ours], () => "never"),
    ]) {
      expect(await rejection(call())).toBeInstanceOf(InvalidOptionError);
      expect(await redis.keysLeft()).toEqual([]);
    }
  });

  test("releases the first group's part if a key has another type", async () => {
    const locks = await openGroups(redis, two);
    for (const index of [3, 4, 5]) await redis.server(index).command("LPUSH", other, "not a lock");
    const attempts = collect(locks, "attempt");
    const error = await rejection(locks.acquire([ours, other], { wait: "60s" }));
    expect(error).toBeInstanceOf(HoldfastError);
    expect(attempts).toHaveLength(1);
    expect(await places(ours)).toEqual([]);
    for (const index of [3, 4, 5]) await redis.server(index).command("DEL", other);
  });

  test("releases the first group's part if the user may not touch the key", async () => {
    const locks = await openGroups(redis, two, { prefix: "lock:" });
    const rendezvous = new Rendezvous(ids);
    const named = (id: string): string => {
      const names = Array.from({ length: 100 }, (_, n) => `acl-${n}`);
      return names.find((name) => ids[rendezvous.homeOf(key(name))] === id) ?? "";
    };
    const [first, second] = [named("1"), named("2")];
    for (const index of [3, 4, 5]) {
      const rules = ["resetkeys", "~holdfast:*", `~${key("none")}`];
      await redis.server(index).command("ACL", "SETUSER", "default", ...rules);
    }
    onTestFinished(async () => {
      for (const index of [3, 4, 5]) {
        await redis.server(index).command("ACL", "SETUSER", "default", "allkeys");
      }
    });
    const error = await rejection(locks.acquire([first, second], { wait: "60s" }));
    expect(String(error)).toContain("NOPERM");
    for (const index of [0, 1, 2]) {
      expect(await redis.server(index).command("GET", key(first))).toBeNull();
    }
  });

  test("releases the first group's part if a client throws instead of rejecting", async () => {
    let spoiled = false;
    const locks = await openSpoiled((client) => {
      const connection = watchConnection(client);
      return {
        ...connection,
        send(key: string, command: readonly string[]) {
          if (spoiled && command.includes(other)) throw new Error("a bug of the client");
          return connection.send(key, command);
        },
      };
    });
    await (await locks.acquire([ours, other])).release();
    spoiled = true;
    expect(String(await rejection(locks.tryAcquire([ours, other])))).toContain(
      "a bug of the client",
    );
    expect(await places(ours)).toEqual([]);
    spoiled = false;
    await (await locks.acquire([ours, other], { wait: 0 })).release();
  });

  test("releases the first group's part if the call is aborted while the second group gets its request", async () => {
    const controller = new AbortController();
    const reason = new Error("the caller has changed its mind");
    let asked = 0;
    const locks = await openSpoiled((client) => {
      const connection = watchConnection(client);
      return {
        ...connection,
        send(key: string, command: readonly string[]) {
          if (command.includes(other)) {
            asked += 1;
            controller.abort(reason);
          }
          return connection.send(key, command);
        },
      };
    });
    const { signal } = controller;
    expect(await rejection(locks.acquire([ours, other], { signal, wait: "60s" }))).toBe(reason);
    expect(asked).toBeGreaterThan(0);
    await redis.untilFree();
  });
});
