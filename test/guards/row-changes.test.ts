import mysql from "mysql2/promise";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, InvalidOptionError, StoreError } from "../../src/core/errors.ts";
import * as mysqlGuards from "../../src/fencing/mysql.ts";
import * as postgresGuards from "../../src/fencing/postgres.ts";
import type { FencedRowDelete, FencedUpdate, FencedUpsert } from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { leaseLike, rejectionOf, shuffledFences } from "./lease-like.ts";
import { pgClient, pgliteClient, postgresJsClient } from "./postgres-clients.ts";
import type { PostgresClient } from "./postgres-clients.ts";

const { expression } = postgresGuards;

const databases = shareDatabases("postgres", "mariadb");

/** The calls on one kind of database, inside and outside of a transaction. */
interface Target {
  readonly calls: Calls;
  readonly inTransaction: (work: (calls: Calls) => Promise<unknown>) => Promise<unknown>;
  readonly run: (sql: string) => Promise<readonly Record<string, unknown>[]>;
  readonly columnSql: string;
  readonly close: () => Promise<unknown>;
}

interface Calls {
  readonly update: (fence: bigint, update: FencedUpdate) => Promise<{ updated: number }>;
  readonly upsert: (fence: bigint, upsert: FencedUpsert) => Promise<{ inserted: boolean }>;
  readonly remove: (fence: bigint, row: FencedRowDelete) => Promise<{ deleted: number }>;
}

function callsOn<Database>(
  guards: {
    fencedUpdate: (
      db: Database,
      fence: bigint,
      update: FencedUpdate,
    ) => Promise<{ updated: number }>;
    fencedUpsert: (
      db: Database,
      fence: bigint,
      upsert: FencedUpsert,
    ) => Promise<{ inserted: boolean }>;
    fencedDelete: (
      db: Database,
      fence: bigint,
      row: FencedRowDelete,
    ) => Promise<{ deleted: number }>;
  },
  db: Database,
): Calls {
  return {
    update: (fence, update) => guards.fencedUpdate(db, fence, update),
    upsert: (fence, upsert) => guards.fencedUpsert(db, fence, upsert),
    remove: (fence, row) => guards.fencedDelete(db, fence, row),
  };
}

async function postgresTarget(connect: () => PostgresClient | Promise<PostgresClient>) {
  const client = await connect();
  return {
    calls: callsOn(postgresGuards, client.db),
    inTransaction: (work: (calls: Calls) => Promise<unknown>) =>
      client.transaction((db) => work(callsOn(postgresGuards, db))),
    run: (sql: string) => client.run(sql),
    columnSql: postgresGuards.fenceColumnSql("stock"),
    close: () => client.close(),
  };
}

async function mysqlTarget(): Promise<Target> {
  const pool = mysql.createPool({ ...databases.mariadb, connectionLimit: 12 });
  return {
    calls: callsOn<mysqlGuards.MysqlDatabase>(mysqlGuards, pool),
    inTransaction: async (work) => {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        const result = await work(callsOn<mysqlGuards.MysqlDatabase>(mysqlGuards, connection));
        await connection.commit();
        return result;
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
    run: async (sql) => {
      const [rows] = await pool.query<mysql.RowDataPacket[]>(sql);
      return Array.isArray(rows) ? rows.map((row) => ({ ...row })) : [];
    },
    columnSql: mysqlGuards.fenceColumnSql("stock"),
    close: () => pool.end(),
  };
}

const kinds: readonly (readonly [string, () => Promise<Target>])[] = [
  ["pg", () => postgresTarget(() => pgClient(databases.postgres))],
  ["postgres", () => postgresTarget(() => postgresJsClient(databases.postgres))],
  ["PGlite", () => postgresTarget(() => pgliteClient())],
  ["mysql2", mysqlTarget],
];

describe.each(kinds)("fenced changes through %s", (_, connect) => {
  let target: Target;

  beforeAll(async () => {
    target = await connect();
  });

  afterAll(async () => {
    await target.close();
  });

  beforeEach(async () => {
    await target.run("DROP TABLE IF EXISTS stock");
    await target.run(
      "CREATE TABLE stock (item VARCHAR(20) NOT NULL, shelf INT NOT NULL, total INT, " +
        "note VARCHAR(20), code INT UNIQUE, PRIMARY KEY (item, shelf))",
    );
    await target.run(target.columnSql);
  });

  const key = { item: "nail", shelf: 3 };
  const upsert = (note: string): FencedUpsert => ({
    table: "stock",
    key,
    set: { note },
    insert: { total: 1 },
  });
  const stock = async (): Promise<unknown> => {
    const rows = await target.run("SELECT item, shelf, total, note, fence FROM stock");
    return rows.map((row) => ({ ...row, fence: String(row["fence"]) }));
  };

  describe("an upsert", () => {
    it("inserts a row with its fence, updates it later, and refuses a smaller fence", async () => {
      expect(await target.calls.upsert(7n, upsert("new"))).toEqual({ inserted: true });
      expect(await stock()).toEqual([{ ...key, total: 1, note: "new", fence: "7" }]);
      await target.run("UPDATE stock SET total = 5");
      expect(await target.calls.upsert(7n, upsert("again"))).toEqual({ inserted: false });
      expect(await target.calls.upsert(8n, upsert("later"))).toEqual({ inserted: false });
      const error = await rejectionOf(target.calls.upsert(7n, upsert("late")));
      expect(error).toBeInstanceOf(FenceRejectedError);
      expect(error).toMatchObject({ fence: 7n, seen: 8n, resources: ["stock"] });
      expect(await stock()).toEqual([{ ...key, total: 5, note: "later", fence: "8" }]);
    });

    it("counts with an expression, and begins with the value of `insert`", async () => {
      const more = { ...upsert("x"), set: { total: expression`total + ${10}` } };
      await target.calls.upsert(1n, more);
      await target.calls.upsert(1n, more);
      expect(await stock()).toMatchObject([{ total: 11 }]);
    });

    it("keeps the write of the greatest fence of many concurrent ones on a new row", async () => {
      await Promise.all(
        shuffledFences(30, 4).map(async (fence) => {
          try {
            await target.calls.upsert(fence, upsert(String(fence)));
          } catch (error) {
            expect(error).toBeInstanceOf(FenceRejectedError);
          }
        }),
      );
      expect(await stock()).toEqual([{ ...key, total: 1, note: "30", fence: "30" }]);
    });

    it("works in a transaction, and is undone with it", async () => {
      const undone = target.inTransaction(async (calls) => {
        expect(await calls.upsert(7n, upsert("undone"))).toEqual({ inserted: true });
        expect(await calls.upsert(7n, upsert("undone"))).toEqual({ inserted: false });
        throw new Error("changed my mind");
      });
      expect(await rejectionOf(undone)).toMatchObject({ message: "changed my mind" });
      expect(await stock()).toEqual([]);
    });

    it("rejects if another unique index prevents the insert, and changes no other row", async () => {
      await target.calls.upsert(7n, { ...upsert("a"), insert: { code: 5 } });
      const other = { ...upsert("b"), key: { item: "screw", shelf: 1 }, insert: { code: 5 } };
      const error = await rejectionOf(target.calls.upsert(9n, other));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ message: expect.stringContaining("(item, shelf)") });
      expect(await stock()).toMatchObject([{ ...key, note: "a", fence: "7" }]);
    });

    it.each([
      ["an empty key", { key: {} }, "key"],
      ["a key that is null", { key: { ...key, shelf: null } }, "shelf"],
      ["a key in `set` with another value", { set: { shelf: 4 } }, "shelf"],
      [
        "an expression without first value",
        { insert: {}, set: { total: expression`1` } },
        "insert.total",
      ],
      ["an expression in `insert`", { insert: { total: expression`1` } }, "insert.total"],
      ["the fence in `insert`", { insert: { fence: 1 } }, "insert"],
      ["an unknown option", { where: {} }, "where"],
    ])("refuses %s", async (name, change, option) => {
      const given = { ...upsert("x"), ...change } as never;
      const error = await rejectionOf(target.calls.upsert(1n, given));
      expect(error, name).toBeInstanceOf(InvalidOptionError);
      expect(error).toMatchObject({ option });
      expect(await stock()).toEqual([]);
    });
  });

  describe("a delete", () => {
    it("removes the row if no fence is greater", async () => {
      await target.calls.upsert(7n, upsert("a"));
      const error = await rejectionOf(target.calls.remove(6n, { table: "stock", where: key }));
      expect(error).toMatchObject({ code: "FENCE_REJECTED", seen: 7n });
      expect(await stock()).toHaveLength(1);
      const row = { table: "stock", where: key };
      expect(await target.calls.remove(7n, row)).toEqual({ deleted: 1 });
      expect(await target.calls.remove(7n, row)).toEqual({ deleted: 0 });
      expect(await stock()).toEqual([]);
    });

    it("removes all matching rows or none", async () => {
      for (const shelf of [1, 2]) {
        await target.calls.upsert(BigInt(shelf), { ...upsert("a"), key: { ...key, shelf } });
      }
      const row = { table: "stock", where: { item: "nail" } };
      expect(await rejectionOf(target.calls.remove(1n, row))).toMatchObject({ seen: 2n });
      expect(await stock()).toHaveLength(2);
      expect(await target.calls.remove(2n, row)).toEqual({ deleted: 2 });
    });
  });

  describe("an expression", () => {
    it("is computed by the server, and its values never become SQL", async () => {
      await target.calls.upsert(1n, upsert("a"));
      const hostile = "'; DROP TABLE stock; --";
      await target.calls.update(2n, {
        table: "stock",
        where: key,
        set: {
          total: expression`total * ${3} + ${4}`,
          note: expression`SUBSTRING(${hostile} FROM 1 FOR 12)`,
        },
      });
      expect(await stock()).toMatchObject([{ total: 7, note: "'; DROP TABL", fence: "2" }]);
    });

    it("is refused in `where`", async () => {
      const where = { ...key, total: expression`1` };
      const error = await rejectionOf(target.calls.update(1n, { table: "stock", where, set: {} }));
      expect(error).toMatchObject({ option: "where.total" });
    });
  });

  it("name the lease's resource, and report the rejection to the lease", async () => {
    await target.calls.upsert(9n, upsert("a"));
    const lease = leaseLike(8n, "stock:nail");
    const given = lease as unknown as bigint;
    for (const attempt of [
      () => target.calls.upsert(given, upsert("b")),
      () => target.calls.remove(given, { table: "stock", where: key }),
    ]) {
      expect(await rejectionOf(attempt())).toMatchObject({ resources: ["stock:nail"], seen: 9n });
    }
    expect(lease.rejections).toHaveLength(2);
  });
});

describe("the template tag `expression`", () => {
  it("refuses an empty text and missing values", () => {
    expect(() => expression`${undefined}x`).toThrow("`expression`");
    expect(() => expression` `).toThrow("`expression`");
    expect(() => expression("total" as never)).toThrow("`expression`");
  });
});
