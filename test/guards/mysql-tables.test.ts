import mysql from "mysql2/promise";
import { beforeEach, describe, expect, it } from "vitest";
import { FenceRejectedError, StoreError } from "../../src/core/errors.ts";
import { assertFenced, fenceColumnSql, fencedUpdate, guardFence } from "../../src/fencing/mysql.ts";
import { guardTableSql, mysqlFences, type MysqlPool } from "../../src/fencing/mysql.ts";
import { shareDatabases } from "./databases.ts";
import { fenceNow, leaseLike, rejectionOf } from "./lease-like.ts";
import { untilSessionWaits } from "./row-lock-waits.ts";

const databases = shareDatabases("mariadb");
let pool: mysql.Pool;

beforeEach(async () => {
  pool = mysql.createPool(databases.mariadb);
  await pool.query("DROP TABLE IF EXISTS invoice, holdfast_fence");
  return () => pool.end();
});

const row = { table: "invoice", where: { id: 42 } };

async function createTable(fence: string, engine = "InnoDB"): Promise<void> {
  await pool.query(`CREATE TABLE invoice (id INT PRIMARY KEY, fence ${fence}) ENGINE=${engine}`);
  await pool.query("INSERT INTO invoice (id) VALUES (42)");
}

async function fenceInRow(): Promise<unknown> {
  const [rows] = await pool.query<mysql.RowDataPacket[]>("SELECT fence FROM invoice");
  return rows[0]?.["fence"];
}

describe("a table that cannot carry fences", () => {
  it.each(["MyISAM", "Aria", "MEMORY"])("is refused: engine %s", async (engine) => {
    await createTable("BIGINT", engine);
    for (const table of ["invoice", "app.invoice"]) {
      const error = await rejectionOf(fencedUpdate(pool, 7n, { ...row, table, set: {} }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ message: expect.stringContaining(`engine ${engine}`) });
    }
    expect(await fenceInRow()).toBeNull();
    await pool.query("ALTER TABLE invoice ENGINE=InnoDB");
    expect(await fencedUpdate(pool, 7n, { ...row, set: {} })).toEqual({ updated: 1 });
  });

  it("is refused as guard table: engine MyISAM", async () => {
    await pool.query(guardTableSql().replace("InnoDB", "MyISAM"));
    const connection = await pool.getConnection();
    await connection.beginTransaction();
    const error = await rejectionOf(guardFence(connection, leaseLike(7n)));
    expect(error).toMatchObject({ code: "STORE", message: expect.stringContaining("MyISAM") });
    await connection.rollback();
    connection.release();
    const store = await rejectionOf(mysqlFences(pool).admit("a", 7n));
    expect(store).toMatchObject({ code: "STORE", message: expect.stringContaining("MyISAM") });
  });

  it.each(["INT", "VARCHAR(30)", "DOUBLE"])(
    "is refused: fence column of type %s, on a server that cuts values silently",
    async (type) => {
      await createTable(type);
      const loose = mysql.createPool({ ...databases.mariadb, connectionLimit: 1 });
      await loose.query("SET SESSION sql_mode = ''");
      for (let time = 1; time <= 2; time += 1) {
        const error = await rejectionOf(fencedUpdate(loose, fenceNow(), { ...row, set: {} }));
        expect(error).toBeInstanceOf(StoreError);
        expect(error).toMatchObject({ message: expect.stringContaining("needs BIGINT") });
      }
      await loose.end();
      expect(await fenceInRow()).toBeNull();
    },
  );

  it("is named when a fence that is NULL kept a hand-written update from its row", async () => {
    await createTable("BIGINT");
    const [outcome] = await pool.query<mysql.ResultSetHeader>(
      "UPDATE invoice SET fence = 7 WHERE id = 42 AND fence <= 7",
    );
    const error = await rejectionOf(assertFenced(pool, 7n, outcome, row));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: expect.stringContaining("COALESCE(fence, 0)") });
  });
});

describe("a view of a table", () => {
  it("is updated like its table", async () => {
    await createTable("BIGINT");
    await pool.query("CREATE OR REPLACE VIEW open_invoice AS SELECT * FROM invoice");
    const update = { ...row, table: "open_invoice", set: {} };
    expect(await fencedUpdate(pool, 7n, update)).toEqual({ updated: 1 });
    expect(await rejectionOf(fencedUpdate(pool, 6n, update))).toBeInstanceOf(FenceRejectedError);
    await pool.query("DROP VIEW open_invoice");
  });
});

describe("an update of several rows that meets a deadlock", () => {
  it("is repeated on a pool, and passed on inside a transaction", async () => {
    await pool.query("CREATE TABLE invoice (id INT PRIMARY KEY, open INT DEFAULT 1, note TEXT)");
    await pool.query("INSERT INTO invoice (id) VALUES (42), (43)");
    await pool.query(fenceColumnSql("invoice"));
    const both = { table: "invoice", set: {}, where: { open: 1 } };
    const own = await pool.getConnection();
    for (const db of [pool, own]) {
      await own.beginTransaction();
      const other = await pool.getConnection();
      await other.beginTransaction();
      // It has changed more than the update, so the server chooses the update as the victim.
      await other.query("UPDATE invoice SET note = UUID() WHERE id = 43");
      const update = fencedUpdate(db, 7n, both).catch((error: unknown) => error);
      await untilSessionWaits(pool);
      await other.query("UPDATE invoice SET note = UUID() WHERE id = 42");
      await other.commit();
      other.release();
      if (db === pool) expect(await update).toEqual({ updated: 2 });
      else expect(await update).toMatchObject({ errno: 1213 });
      await own.rollback();
    }
    own.release();
  });
});

describe("a pool whose ROLLBACK fails", () => {
  it("gets no connection back that may be inside a transaction", async () => {
    await createTable("BIGINT");
    const own = mysql.createPool({ ...databases.mariadb, connectionLimit: 1 });
    const unreliable: MysqlPool = {
      query: (sql) => own.query(sql),
      execute: own.execute.bind(own),
      getConnection: async () => {
        const connection = await own.getConnection();
        const query = connection.query.bind(connection) as (sql: string) => Promise<unknown>;
        connection.query = (async (sql: string) => {
          if (sql === "ROLLBACK") throw new Error("the packet was lost");
          return await query(sql);
        }) as never;
        return connection;
      },
    };
    const session = async (): Promise<unknown> => {
      const [rows] = await own.query<mysql.RowDataPacket[]>("SELECT CONNECTION_ID() AS id");
      return rows[0]?.["id"];
    };
    const before = await session();
    await fencedUpdate(pool, 9n, { ...row, set: {} });
    const stale = await rejectionOf(fencedUpdate(unreliable, 8n, { ...row, set: {} }));
    expect(stale).toBeInstanceOf(FenceRejectedError);
    expect(await session()).not.toBe(before);
    // The row is locked no longer.
    expect(await fencedUpdate(pool, 10n, { ...row, set: {} })).toEqual({ updated: 1 });
    await own.end();
  });
});
