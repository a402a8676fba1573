import type { Redis } from "ioredis";
import type mysql from "mysql2/promise";
import type { Pool } from "pg";
import { beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { FenceAheadError } from "../../src/index.ts";
import { fenceGuard, memoryFences, throwIfFenceRejected } from "../../src/fencing/http.ts";
import { withFence, type LowerableFenceStore } from "../../src/fencing/http.ts";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import * as redisGuards from "../../src/fencing/redis.ts";
import { shareDatabases } from "./databases.ts";
import { serveFetch } from "./http-servers.ts";
import { fenceNow, leaseLike, rejectionOf } from "./lease-like.ts";

const databases = shareDatabases("postgres", "mariadb", "redis");
let pool: Pool;
let mysqlPool: mysql.Pool;
let client: Redis;

beforeAll(async () => {
  ({ postgresPool: pool, mariadbPool: mysqlPool, redisClient: client } = databases);
  const table = "CREATE TABLE invoice (id INT PRIMARY KEY, note TEXT)";
  for (const sql of [
    table,
    postgresGuards.fenceColumnSql("invoice"),
    postgresGuards.guardTableSql(),
  ]) {
    await pool.query(sql);
  }
  for (const sql of [table, mysqlGuards.fenceColumnSql("invoice"), mysqlGuards.guardTableSql()]) {
    await mysqlPool.query(sql);
  }
});

beforeEach(async () => {
  await databases.redis.command("FLUSHALL");
  for (const sql of [
    "DELETE FROM invoice",
    "INSERT INTO invoice (id) VALUES (42)",
    "DELETE FROM holdfast_fence",
  ]) {
    await Promise.all([pool.query(sql), mysqlPool.query(sql)]);
  }
});

const day = 86_400_000_000n;
const row = { table: "invoice", where: { id: 42 } };
const unlimited = { maxFenceAhead: "unlimited" } as const;
/** A fence in nanoseconds: a likely mistake. */
const nanoseconds = (): bigint => fenceNow() * 1_000n;

type Options = { readonly maxFenceAhead?: "48h" | "unlimited" };
interface Guard {
  readonly write: (fence: bigint, options?: Options) => Promise<unknown>;
  readonly lower: (fence: bigint) => Promise<unknown>;
}

async function inPostgres(work: (db: postgresGuards.PostgresDatabase) => Promise<void>) {
  const session = await pool.connect();
  try {
    await session.query("BEGIN");
    await work(session);
    await session.query("COMMIT");
  } catch (error) {
    await session.query("ROLLBACK");
    throw error;
  } finally {
    session.release();
  }
}

async function inMysql(work: (db: mysqlGuards.MysqlDatabase) => Promise<void>) {
  const session = await mysqlPool.getConnection();
  try {
    await session.beginTransaction();
    await work(session);
    await session.commit();
  } catch (error) {
    await session.rollback();
    throw error;
  } finally {
    session.release();
  }
}

const httpStore = memoryFences();

const guards: Readonly<Record<string, Guard>> = {
  "Postgres row": {
    write: (fence, options) =>
      postgresGuards.fencedUpdate(pool, leaseLike(fence), { ...row, set: {}, ...options }),
    lower: (fence) => postgresGuards.lowerFence(pool, leaseLike(fence), row),
  },
  "Postgres row with the trigger": {
    write: async (fence, options) => {
      await pool.query(postgresGuards.fenceTriggerSql("invoice"));
      await postgresGuards.fencedUpdate(pool, leaseLike(fence), { ...row, set: {}, ...options });
    },
    lower: (fence) => postgresGuards.lowerFence(pool, leaseLike(fence), row),
  },
  "Postgres guard table": {
    write: (fence, options) =>
      inPostgres((db) => postgresGuards.guardFence(db, leaseLike(fence), options)),
    lower: (fence) => postgresGuards.postgresFences(pool).lower(leaseLike(fence)),
  },
  "MariaDB row": {
    write: (fence, options) =>
      mysqlGuards.fencedUpdate(mysqlPool, leaseLike(fence), { ...row, set: {}, ...options }),
    lower: (fence) => mysqlGuards.lowerFence(mysqlPool, leaseLike(fence), row),
  },
  "MariaDB guard table": {
    write: (fence, options) =>
      inMysql((db) => mysqlGuards.guardFence(db, leaseLike(fence), options)),
    lower: (fence) => mysqlGuards.mysqlFences(mysqlPool).lower(leaseLike(fence)),
  },
  "Redis value": {
    write: (fence, options) => redisGuards.fencedSet(client, leaseLike(fence), "k", "v", options),
    lower: (fence) => redisGuards.lowerFence(client, leaseLike(fence), "k"),
  },
  "Redis deletion": {
    write: (fence, options) => redisGuards.fencedDelete(client, leaseLike(fence), "k", options),
    lower: (fence) => redisGuards.lowerFence(client, leaseLike(fence), "k"),
  },
  "HTTP server": {
    write: async (fence, options) => {
      const guard = fenceGuard({ store: httpStore, ...options });
      const server = await serveFetch((request) => guard.handle(request, () => new Response()));
      try {
        const lease = leaseLike(fence);
        const response = await fetch(server.url, withFence(lease, { method: "PUT" }));
        await throwIfFenceRejected(response, lease);
        expect(response.status).toBe(200);
      } finally {
        await server.close();
      }
    },
    lower: (fence) => httpStore.lower(leaseLike(fence)),
  },
};

describe.each(Object.entries(guards))("the guard of a %s", (_, { write, lower }) => {
  it("refuses a fence more than a day ahead of the clock, and keeps accepting later holders", async () => {
    for (const fence of [fenceNow() + day + 60_000_000n, nanoseconds(), 2n ** 63n - 1n]) {
      const error = await rejectionOf(write(fence));
      expect(error).toBeInstanceOf(FenceAheadError);
      expect(error).toMatchObject({ code: "FENCE_AHEAD", fence, resources: ["invoice:42"] });
      expect((error as FenceAheadError).limit < fence).toBe(true);
    }
    await write(7n);
    await write(fenceNow());
    await write(fenceNow() + day - 60_000_000n);
  });

  it("accepts a fence as far ahead as `maxFenceAhead` allows", async () => {
    const ahead = fenceNow() + day + 60_000_000n;
    await write(ahead, { maxFenceAhead: "48h" });
    expect(await rejectionOf(write(ahead + day, { maxFenceAhead: "48h" }))).toBeInstanceOf(
      FenceAheadError,
    );
    await write(2n ** 63n - 1n, unlimited);
    await lower(fenceNow());
  });

  it("lets holders in again after an implausible fence was lowered, but no earlier one", async () => {
    const earlier = fenceNow() - 1_000n;
    await write(nanoseconds(), unlimited);
    expect(await rejectionOf(write(fenceNow()))).toMatchObject({ code: "FENCE_REJECTED" });
    const repairer = fenceNow();
    expect(await lower(repairer)).toEqual({ lowered: 1 });
    expect(await rejectionOf(write(earlier))).toMatchObject({ seen: repairer });
    await write(repairer);
    await write(fenceNow());
  });

  it("never lowers a plausible fence, and never to an implausible one", async () => {
    const fence = fenceNow();
    await write(fence);
    expect(await lower(fence - 5n)).toEqual({ lowered: 0 });
    expect(await rejectionOf(write(fence - 5n))).toMatchObject({ seen: fence });
    const error = await rejectionOf(Promise.resolve().then(() => lower(nanoseconds())));
    expect(error).toBeInstanceOf(FenceAheadError);
  });
});

describe("a fence store of the HTTP guard", () => {
  const stores: Readonly<Record<string, () => LowerableFenceStore>> = {
    memory: () => memoryFences(),
    Redis: () => redisGuards.redisFences(client, { forgetAfter: "1h" }),
    Postgres: () => postgresGuards.postgresFences(pool),
    MariaDB: () => mysqlGuards.mysqlFences(mysqlPool),
  };

  it.each(Object.entries(stores))(
    "in %s lowers the given resources, and leaves others alone",
    async (_, create) => {
      const store = create();
      const huge = nanoseconds();
      for (const resource of ["a", "b", "c"]) await store.admit(resource, huge);
      const lease = leaseLike(fenceNow(), "a", "b", "never seen");
      expect(await store.lower(lease)).toEqual({ lowered: 2 });
      expect(await store.admit("a", lease.fence)).toEqual({ accepted: true });
      expect(await store.admit("b", lease.fence - 1n)).toMatchObject({ seen: lease.fence });
      expect(await store.admit("c", lease.fence)).toEqual({ accepted: false, seen: huge });
      expect(await store.lower(lease.fence, { resource: "c" })).toEqual({ lowered: 1 });
      const kept = Number(await databases.redis.command("PTTL", "holdfast:guard:a"));
      expect(kept === -2 || kept > 60_000).toBe(true);
    },
  );
});

describe("lowering a fence refuses", () => {
  it("bad options, and keys that hold something else", async () => {
    const store = memoryFences();
    const lower = (options: unknown): Promise<unknown> =>
      rejectionOf(Promise.resolve().then(() => store.lower(1n, options as never)));
    expect(await lower({ resource: "a", ...unlimited })).toMatchObject({ option: "maxFenceAhead" });
    expect(await lower({ resource: "a", maxFenceAhead: "x" })).toMatchObject({
      option: "maxFenceAhead",
    });
    expect(await lower({})).toMatchObject({ option: "resource" });
    expect(await lower({ resourc: "a" })).toMatchObject({ option: "resourc" });
    await databases.redis.command("SET", "plain", "x");
    await databases.redis.command("SADD", "set", "x");
    for (const key of ["plain", "set"]) {
      const error = await rejectionOf(redisGuards.lowerFence(client, fenceNow(), key));
      expect(error).toMatchObject({ code: "STORE" });
    }
  });
});

describe("on a machine whose clock is three years behind", () => {
  const threeYearsMs = 3 * 365 * 86_400_000;
  /** Fence by the right clock, which `Date.now` does not show here. */
  const rightFence = (): bigint => fenceNow() + BigInt(threeYearsMs) * 1_000n;

  /** Loads the guards anew, because they keep the clock that they find when they load. */
  async function loadBehind() {
    const { now } = Date;
    vi.resetModules();
    vi.spyOn(Date, "now").mockImplementation(() => now() - threeYearsMs);
    onTestFinished(() => {
      vi.restoreAllMocks();
      vi.resetModules();
    });
    return {
      postgres: await import("../../src/fencing/postgres.ts"),
      mysql: await import("../../src/fencing/mysql.ts"),
      redis: await import("../../src/fencing/redis.ts"),
    };
  }

  it("accepts the fences of its leases, by the clock of each server", async () => {
    const guards = await loadBehind();
    const lease = leaseLike(rightFence());
    const update = { ...row, set: { note: "paid" } };
    expect(await guards.postgres.fencedUpdate(pool, lease, update)).toEqual({ updated: 1 });
    expect(await guards.mysql.fencedUpdate(mysqlPool, lease, update)).toEqual({ updated: 1 });
    await guards.redis.fencedSet(client, lease, "balance:7", "1");
    const own = await pool.connect();
    onTestFinished(() => own.release());
    await own.query("BEGIN");
    await guards.postgres.guardFence(own, lease);
    await own.query("COMMIT");
    const session = await mysqlPool.getConnection();
    onTestFinished(() => session.release());
    await session.query("START TRANSACTION");
    await guards.mysql.guardFence(session, lease);
    await session.query("COMMIT");
  });

  it("still refuses a huge fence, and lowers none that is plausible", async () => {
    const guards = await loadBehind();
    const huge = leaseLike(nanoseconds());
    const update = { ...row, set: { note: "paid" } };
    const ahead = { code: "FENCE_AHEAD" };
    const { postgres: onPostgres, mysql: onMysql, redis: onRedis } = guards;
    await expect(onPostgres.fencedUpdate(pool, huge, update)).rejects.toMatchObject(ahead);
    await expect(onMysql.fencedUpdate(mysqlPool, huge, update)).rejects.toMatchObject(ahead);
    await expect(onRedis.fencedSet(client, huge, "balance:7", "1")).rejects.toMatchObject(ahead);
    const earlier = rightFence();
    await guards.postgres.fencedUpdate(pool, earlier, update);
    await guards.mysql.fencedUpdate(mysqlPool, earlier, update);
    await guards.redis.fencedSet(client, earlier, "balance:7", "1");
    await guards.postgres.postgresFences(pool).admit("invoice:42", earlier);
    const lease = leaseLike(rightFence());
    const none = { lowered: 0 };
    expect(await guards.postgres.lowerFence(pool, lease, row)).toEqual(none);
    expect(await guards.mysql.lowerFence(mysqlPool, lease, row)).toEqual(none);
    expect(await guards.redis.lowerFence(client, lease, "balance:7")).toEqual(none);
    expect(await guards.postgres.postgresFences(pool).lower(lease)).toEqual(none);
    expect(await guards.mysql.mysqlFences(mysqlPool).lower(lease)).toEqual(none);
    expect(await guards.redis.redisFences(client).lower(lease)).toEqual(none);
  });
});
