import callbackMysql from "mysql2";
import mysql from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../../src/core/errors.ts";
import { UnsupportedError } from "../../src/core/errors.ts";
import { assertFenced, fenceColumnSql, fencedUpdate } from "../../src/fencing/mysql.ts";
import { guardFence, guardTableSql } from "../../src/fencing/mysql.ts";
import type { FencedUpdate, MysqlDatabase } from "../../src/fencing/mysql.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf, shuffledFences, unfencedLease } from "./lease-like.ts";
import { untilSessionWaits } from "./row-lock-waits.ts";

const databases = shareDatabases("mariadb");
let pool: mysql.Pool;

beforeAll(() => {
  pool = databases.mariadbPool;
});

async function rows(sql: string): Promise<readonly unknown[]> {
  const [found] = await pool.query<mysql.RowDataPacket[]>(sql);
  return found.map((row) => ({ ...row }));
}

/** Runs `work` in a transaction, and rolls back if it rejects. */
async function transaction<Result>(
  work: (connection: mysql.PoolConnection) => Promise<Result>,
  level = "REPEATABLE READ",
): Promise<Result> {
  const connection = await pool.getConnection();
  try {
    await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
    await connection.beginTransaction();
    const result = await work(connection);
    await connection.commit();
    return result;
  } catch (error) {
    await connection.rollback();
    throw error;
  } finally {
    connection.release();
  }
}

const write = (note: string): FencedUpdate => ({
  table: "invoice",
  set: { paid: true, note },
  where: { id: 42 },
  maxFenceAhead: "unlimited",
});

const invoice = async (): Promise<unknown> =>
  (await rows("SELECT paid, note, CAST(fence AS CHAR) AS fence FROM invoice WHERE id = 42"))[0];

const beyondDouble = 9_007_199_254_740_993n;

beforeEach(async () => {
  await pool.query("DROP TABLE IF EXISTS invoice");
  await pool.query(
    "CREATE TABLE invoice (id INT PRIMARY KEY, paid BOOLEAN NOT NULL DEFAULT false, note TEXT, " +
      "big BIGINT, at DATETIME(3), raw BLOB)",
  );
  await pool.query("INSERT INTO invoice (id) VALUES (42), (43)");
  await pool.query(fenceColumnSql("invoice"));
  await pool.query("DROP TABLE IF EXISTS holdfast_fence");
  await pool.query(guardTableSql());
});

/** Each way in which mysql2 counts rows, and each form of its interface. */
const kinds: readonly (readonly [string, () => { db: MysqlDatabase; end: () => Promise<void> }])[] =
  [
    [
      "a promise pool",
      () => {
        const own = mysql.createPool({ ...databases.mariadb, connectionLimit: 5 });
        return { db: own, end: () => own.end() };
      },
    ],
    [
      "a pool that counts changed rows only",
      () => {
        const own = mysql.createPool({
          ...databases.mariadb,
          connectionLimit: 5,
          flags: ["-FOUND_ROWS"],
        });
        return { db: own, end: () => own.end() };
      },
    ],
    [
      "a callback pool",
      () => {
        const own = callbackMysql.createPool({ ...databases.mariadb, connectionLimit: 5 });
        return { db: own, end: () => own.promise().end() };
      },
    ],
  ];

describe.each(kinds)("a fence column through %s", (_, connect) => {
  let db: MysqlDatabase;
  let end: () => Promise<void>;

  beforeAll(() => {
    ({ db, end } = connect());
  });

  afterAll(async () => {
    await end();
  });

  it("accepts an equal fence again, even for a write that changes nothing", async () => {
    expect(await fencedUpdate(db, leaseLike(7n), write("a"))).toEqual({ updated: 1 });
    expect(await fencedUpdate(db, leaseLike(7n), write("a"))).toEqual({ updated: 1 });
    expect(await fencedUpdate(db, leaseLike(7n), write("b"))).toEqual({ updated: 1 });
    expect(await invoice()).toEqual({ paid: 1, note: "b", fence: "7" });
  });

  it("accepts a greater fence and refuses the smaller one with the fence it saw", async () => {
    await fencedUpdate(db, leaseLike(beyondDouble), write("a"));
    const stale = leaseLike(beyondDouble - 1n);
    const error = await rejectionOf(fencedUpdate(db, stale, write("late")));
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({ fence: beyondDouble - 1n, seen: beyondDouble });
    expect(stale.rejections).toMatchObject([{ resource: "invoice:42", guard: "mysql" }]);
    expect(await invoice()).toEqual({ paid: 1, note: "a", fence: String(beyondDouble) });
  });

  it("distinguishes a missing row from a stale fence", async () => {
    const update = { ...write("x"), where: { id: 99 } };
    expect(await fencedUpdate(db, 7n, update)).toEqual({ updated: 0 });
  });

  it("changes all matching rows or none", async () => {
    await fencedUpdate(db, 9n, { table: "invoice", set: {}, where: { id: 43 } });
    const both = { table: "invoice", set: { note: "both" }, where: { paid: false } };
    expect(await rejectionOf(fencedUpdate(db, 8n, both))).toMatchObject({ seen: 9n });
    expect(await rows("SELECT id FROM invoice WHERE note IS NOT NULL")).toEqual([]);
    expect(await fencedUpdate(db, 9n, both)).toEqual({ updated: 2 });
  });

  it("keeps the write of the greatest fence of many concurrent ones", async () => {
    await Promise.all(
      shuffledFences(60, 11).map(async (fence) => {
        try {
          await fencedUpdate(db, fence, write(String(fence)));
        } catch (error) {
          expect(error).toBeInstanceOf(FenceRejectedError);
          const { seen = 0n } = error as FenceRejectedError;
          expect(seen > fence).toBe(true);
        }
      }),
    );
    expect(await invoice()).toEqual({ paid: 1, note: "60", fence: "60" });
  });

  it("explains a hand-written update that changed nothing", async () => {
    const target = { table: "invoice", where: { id: 42 } };
    await fencedUpdate(db, 9n, write("a"));
    const [outcome] = await pool.execute<mysql.ResultSetHeader>(
      "UPDATE invoice SET note = 'b', fence = 8 WHERE id = 42 AND fence <= 8",
    );
    const error = await rejectionOf(assertFenced(db, leaseLike(8n), outcome, target));
    expect(error).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
    expect(await assertFenced(db, 8n, [{ affectedRows: 1 }], target)).toEqual({ updated: 1 });
    expect(await assertFenced(db, 9n, 0, target)).toEqual({ updated: 0 });
    const other = { ...target, where: { id: 99 } };
    expect(await assertFenced(db, 8n, 0, other)).toEqual({ updated: 0 });
  });
});

describe("a fence column on MariaDB", () => {
  it("joins the transaction of a connection, even if that is rolled back", async () => {
    const undone = transaction(async (connection) => {
      await fencedUpdate(connection, leaseLike(7n), write("undone"));
      throw new Error("changed my mind");
    });
    expect(await rejectionOf(undone)).toMatchObject({ message: "changed my mind" });
    expect(await invoice()).toEqual({ paid: 0, note: null, fence: "0" });
    await transaction((connection) =>
      fencedUpdate(
        async (sql, params) => (await connection.query(sql, params))[0],
        leaseLike(7n),
        write("done"),
      ),
    );
    expect(await invoice()).toEqual({ paid: 1, note: "done", fence: "7" });
  });

  it("refuses a connection without a transaction, which could not hold the lock", async () => {
    const connection = await pool.getConnection();
    const error = await rejectionOf(fencedUpdate(connection, leaseLike(7n), write("x")));
    expect(error).toMatchObject({ code: "INVALID_OPTION", option: "db" });
    await connection.query("SET autocommit = 0");
    expect(await fencedUpdate(connection, leaseLike(7n), write("y"))).toEqual({ updated: 1 });
    await connection.query("COMMIT");
    connection.destroy();
    expect(await invoice()).toMatchObject({ note: "y" });
  });

  it.each(["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])(
    "is not misled by the snapshot of a %s transaction",
    async (level) => {
      const stale = transaction(async (connection) => {
        if (level !== "SERIALIZABLE") {
          // Takes the snapshot. In SERIALIZABLE this would lock the row instead.
          await connection.query("SELECT * FROM invoice");
        }
        await fencedUpdate(pool, 9n, write("newer"));
        await fencedUpdate(connection, 8n, write("stale"));
      }, level);
      expect(await rejectionOf(stale)).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
      const again = transaction(async (connection) => {
        if (level !== "SERIALIZABLE") await connection.query("SELECT * FROM invoice");
        await fencedUpdate(pool, 11n, write("newest"));
        await assertFenced(connection, 10n, 0, { table: "invoice", where: { id: 42 } });
      }, level);
      expect(await rejectionOf(again)).toMatchObject({ code: "FENCE_REJECTED", seen: 11n });
      expect(await invoice()).toMatchObject({ note: "newest", fence: "11" });
    },
  );

  it("sees what was committed while it waited for the row", async () => {
    let stale: Promise<unknown> = Promise.resolve();
    await transaction(async (connection) => {
      await fencedUpdate(connection, 9n, write("newer"));
      stale = rejectionOf(fencedUpdate(pool, 8n, write("stale")));
      await untilSessionWaits(pool);
    });
    expect(await stale).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
  });

  it("accepts parameters of every type", async () => {
    const at = new Date("2026-01-02T03:04:05.678Z");
    const raw = Buffer.from([0, 255, 39]);
    await fencedUpdate(pool, 1n, {
      table: "invoice",
      set: { note: "'; DROP TABLE invoice; -- 🔒", big: beyondDouble, at, raw },
      where: { id: 42, note: null },
    });
    const [found] = await rows("SELECT note, CAST(big AS CHAR) AS big, at, raw FROM invoice");
    expect(found).toEqual({
      note: "'; DROP TABLE invoice; -- 🔒",
      big: String(beyondDouble),
      at,
      raw,
    });
  });

  it("quotes unusual names, and no name can end the statement", async () => {
    const table = "od`d; DROP TABLE invoice; --";
    const column = "fence` = 1, x?";
    const name = ["app", table];
    await pool.query("DROP TABLE IF EXISTS `od``d; DROP TABLE invoice; --`");
    await pool.query(
      "CREATE TABLE `od``d; DROP TABLE invoice; --` (`Sélect ?` VARCHAR(9), `where` INT)",
    );
    await pool.query("INSERT INTO `od``d; DROP TABLE invoice; --` VALUES ('a', 1)");
    await pool.query(fenceColumnSql(name, column));
    const update = { table: name, column, set: { "Sélect ?": "b" }, where: { where: 1 } };
    expect(await fencedUpdate(pool, 5n, update)).toEqual({ updated: 1 });
    expect(await rejectionOf(fencedUpdate(pool, 4n, update))).toMatchObject({ seen: 5n });
    const injected = { ...write("x"), table: "invoice` SET paid = true; -- " };
    expect(await rejectionOf(fencedUpdate(pool, 5n, injected))).toMatchObject({
      code: expect.stringMatching(/^ER_/),
    });
    expect(await invoice()).toMatchObject({ paid: 0 });
  });

  it("names the migration if the column is missing, and passes other errors on", async () => {
    const error = await rejectionOf(fencedUpdate(pool, 5n, { ...write("x"), column: "token" }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({
      message: expect.stringContaining('fenceColumnSql("invoice", "token")'),
    });
    const other = { ...write("x"), set: { nonsense: 1 } };
    expect(await rejectionOf(fencedUpdate(pool, 5n, other))).toMatchObject({ errno: 1054 });
    expect(await invoice()).toMatchObject({ paid: 0, fence: "0" });
  });

  it("writes nothing for a lease without a fence, a fence beyond BIGINT, or bad options", async () => {
    const attempt = (fenced: unknown, update: unknown = write("x")): Promise<unknown> =>
      rejectionOf(fencedUpdate(pool, fenced as never, update as never));
    expect(await attempt(unfencedLease())).toBeInstanceOf(UnsupportedError);
    expect(await attempt(2n ** 63n)).toMatchObject({ option: "fence" });
    expect(await attempt(0n)).toMatchObject({ option: "fence" });
    expect(await attempt(1n, { ...write("x"), tabel: "y" })).toMatchObject({ option: "tabel" });
    expect(await attempt(1n, { ...write("x"), where: {} })).toMatchObject({ option: "where" });
    const object = { ...write("x"), where: { id: { id: 1 } } };
    expect(await attempt(1n, object)).toMatchObject({ option: "id" });
    for (const db of [undefined, {}, "mysql://"]) {
      const error = await rejectionOf(fencedUpdate(db as never, 1n, write("x")));
      expect(error).toMatchObject({ code: "INVALID_OPTION", option: "db" });
    }
    const outcome = assertFenced(pool, 1n, {} as never, { table: "invoice", where: { id: 1 } });
    expect(await rejectionOf(outcome)).toMatchObject({ option: "outcome" });
    expect(await invoice()).toEqual({ paid: 0, note: null, fence: "0" });
  });
});

describe("a guard table on MariaDB", () => {
  const guards = (): Promise<readonly unknown[]> =>
    rows(
      "SELECT CAST(resource AS CHAR) AS resource, CAST(fence AS CHAR) AS fence " +
        "FROM holdfast_fence ORDER BY resource",
    );

  it("accepts equal and greater fences and refuses a smaller one", async () => {
    const unlimited = { maxFenceAhead: "unlimited" } as const;
    for (const fence of [7n, 7n, 2n ** 63n - 1n]) {
      await transaction((connection) => guardFence(connection, leaseLike(fence), unlimited));
    }
    const stale = leaseLike(2n ** 63n - 2n);
    const error = await rejectionOf(
      transaction((connection) => guardFence(connection, stale, unlimited)),
    );
    expect(error).toBeInstanceOf(FenceRejectedError);
    expect(error).toMatchObject({ fence: 2n ** 63n - 2n, seen: 2n ** 63n - 1n });
    expect(stale.rejections).toMatchObject([{ resource: "invoice:42", guard: "mysql" }]);
  });

  it("guards every resource of a lease, or the given ones", async () => {
    await transaction((connection) => guardFence(connection, leaseLike(5n, "b", "a", "c")));
    await transaction((connection) => guardFence(connection, 8n, { resource: "b" }));
    const stale = transaction((connection) => guardFence(connection, leaseLike(7n, "a", "b")));
    expect(await rejectionOf(stale)).toMatchObject({ seen: 8n, resources: ["b"] });
    // The whole transaction was rolled back, so "a" still has its old fence.
    expect(await guards()).toEqual([
      { resource: "a", fence: "5" },
      { resource: "b", fence: "8" },
      { resource: "c", fence: "5" },
    ]);
  });

  it("distinguishes resources that a collation would not", async () => {
    const resources = ["a", "A", "a ", "á", "🔒", "l".repeat(4_096)];
    for (const [index, resource] of resources.entries()) {
      const fence = BigInt(20 - index);
      await transaction((connection) => guardFence(connection, fence, { resource }));
      const stale = transaction((connection) => guardFence(connection, fence - 1n, { resource }));
      expect(await rejectionOf(stale)).toMatchObject({ seen: fence, resources: [resource] });
    }
    expect(await guards()).toHaveLength(resources.length);
  });

  it("refuses to run outside of a transaction, because its lock would end at once", async () => {
    const connection = await pool.getConnection();
    for (const db of [pool, connection]) {
      const error = await rejectionOf(guardFence(db, leaseLike(7n)));
      expect(error).toBeInstanceOf(InvalidOptionError);
      expect(error).toMatchObject({ option: "db" });
    }
    connection.release();
    expect(await guards()).toEqual([]);
  });

  it("is not misled by an earlier snapshot", async () => {
    const stale = transaction(async (connection) => {
      await connection.query("SELECT * FROM holdfast_fence");
      await transaction((other) => guardFence(other, leaseLike(9n)));
      await guardFence(connection, leaseLike(8n));
    });
    expect(await rejectionOf(stale)).toMatchObject({ code: "FENCE_REJECTED", seen: 9n });
  });

  it("names the migration if the table is missing, and accepts unusual table names", async () => {
    const table = ["app", "gua`rd; --"];
    const missing = await rejectionOf(
      transaction((connection) => guardFence(connection, leaseLike(7n), { table })),
    );
    expect(missing).toBeInstanceOf(StoreError);
    expect(missing).toMatchObject({ message: expect.stringContaining("guardTableSql(") });
    await pool.query(guardTableSql(table));
    await transaction((connection) => guardFence(connection, leaseLike(7n), { table }));
    await pool.query("DROP TABLE `gua``rd; --`");
  });

  it("accepts the fences of each resource in rising order only", async () => {
    await pool.query("DROP TABLE IF EXISTS log");
    await pool.query("CREATE TABLE log (seq SERIAL, resource VARCHAR(9), fence BIGINT)");
    const sets = [
      ["a", "b"],
      ["b", "c"],
      ["c", "a"],
      ["c", "b", "a"],
    ];
    // The first insert of a row can deadlock in InnoDB; the transaction is then repeated.
    async function guardedWrite(fence: bigint, resources: readonly string[]): Promise<void> {
      try {
        await transaction(async (connection) => {
          await guardFence(connection, leaseLike(fence, ...resources));
          for (const resource of resources) {
            const values = [resource, String(fence)];
            await connection.execute("INSERT INTO log (resource, fence) VALUES (?, ?)", values);
          }
        });
      } catch (error) {
        if ((error as { errno?: number }).errno === 1213) await guardedWrite(fence, resources);
        else if (!(error instanceof FenceRejectedError)) throw error;
      }
    }
    await Promise.all(
      shuffledFences(60, 5).map((fence, index) => guardedWrite(fence, sets[index % 4] ?? [])),
    );
    // No fence is greater, so this one must be accepted.
    expect(await rows("SELECT seq FROM log WHERE fence = 60")).not.toEqual([]);
    for (const resource of ["a", "b", "c"]) {
      const found = await rows(`SELECT fence FROM log WHERE resource = '${resource}' ORDER BY seq`);
      const fences = found.map((row) => (row as { fence: number }).fence);
      expect(fences).toEqual(fences.toSorted((a, b) => a - b));
    }
  });

  it("writes nothing for a lease without a fence, bad fences and bad options", async () => {
    const attempt = (fenced: unknown, options?: unknown): Promise<unknown> =>
      rejectionOf(
        transaction((connection) => guardFence(connection, fenced as never, options as never)),
      );
    expect(await attempt(unfencedLease())).toBeInstanceOf(UnsupportedError);
    expect(await attempt(2n ** 63n, { resource: "a" })).toMatchObject({ option: "fence" });
    expect(await attempt(1n)).toMatchObject({ option: "resource" });
    expect(await attempt(leaseLike(1n), { tabel: "x" })).toMatchObject({ option: "tabel" });
    expect(await guards()).toEqual([]);
  });
});
