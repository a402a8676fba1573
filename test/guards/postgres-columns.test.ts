import { Pool, type PoolClient } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { StoreError } from "../../src/core/errors.ts";
import { assertFenced, fenceColumnSql, fencedUpdate } from "../../src/fencing/postgres.ts";
import { fenceTriggerSql, throwIfFenceRejected } from "../../src/fencing/postgres.ts";
import { shareDatabases } from "./databases.ts";
import { fenceNow, leaseLike, rejectionOf } from "./lease-like.ts";
import { pgClient, postgresClients } from "./postgres-clients.ts";
import type { PostgresClient } from "./postgres-clients.ts";

const databases = shareDatabases("postgres");

const row = { table: "invoice", where: { id: 42 } };

describe.each(postgresClients)("the fence column through %s", (_, connect) => {
  let client: PostgresClient;

  beforeAll(async () => {
    client = await connect(databases.postgres);
  });

  afterAll(async () => {
    await client.close();
  });

  async function createTable(fenceType: string): Promise<void> {
    await client.run("DROP TABLE IF EXISTS invoice");
    await client.run(`CREATE TABLE invoice (id INT PRIMARY KEY, fence ${fenceType})`);
    await client.run("INSERT INTO invoice (id) VALUES (42)");
  }

  it("that is NULL is named when a hand-written update changed nothing", async () => {
    await createTable("BIGINT");
    const changed = await client.run("UPDATE invoice SET fence = 7 WHERE fence <= 7 RETURNING id");
    expect(changed).toEqual([]);
    const error = await rejectionOf(assertFenced(client.db, 7n, 0, row));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ message: expect.stringContaining("COALESCE(fence, 0)") });
    await fencedUpdate(client.db, 7n, { ...row, set: {} });
    expect(await assertFenced(client.db, 7n, 0, row)).toEqual({ updated: 0 });
  });

  it.each(["INT", "SMALLINT", "TEXT", "VARCHAR(30)"])(
    "of type %s is refused with the statement that mends it",
    async (type) => {
      await createTable(type);
      const error = await rejectionOf(fencedUpdate(client.db, fenceNow(), { ...row, set: {} }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({
        message: expect.stringMatching(/"fence" of table "invoice".*needs BIGINT.*ALTER TABLE/),
        cause: expect.objectContaining({ code: expect.stringMatching(/^(22003|42804)$/) }),
      });
      const [found] = await client.run("SELECT fence FROM invoice");
      expect(found).toEqual({ fence: null });
    },
  );

  it("of type NUMERIC holds every fence exactly", async () => {
    await createTable("NUMERIC(20)");
    const fence = fenceNow();
    await fencedUpdate(client.db, fence, { ...row, set: {} });
    const stale = fencedUpdate(client.db, fence - 1n, { ...row, set: {} });
    expect(await rejectionOf(stale)).toMatchObject({ seen: fence });
  });
});

describe("the trigger that refuses a lower fence", () => {
  let client: PostgresClient;

  beforeAll(() => {
    client = pgClient(databases.postgres);
  });

  afterAll(async () => {
    await client.close();
  });

  it("refuses NULL, which would count as never written", async () => {
    await client.run("CREATE TABLE account (id INT, fence BIGINT)");
    await client.run("INSERT INTO account VALUES (1, NULL), (2, 9)");
    await client.run(fenceTriggerSql("account"));
    const error = await rejectionOf(client.run("UPDATE account SET fence = NULL WHERE id = 2"));
    expect(error).toMatchObject({
      code: "HF412",
      message: "fence NULL is stale: fence 9 was seen",
    });
    const lease = leaseLike(8n);
    expect(() => throwIfFenceRejected(error, lease)).toThrow("fence 9 was seen");
    await client.run("UPDATE account SET fence = 3 WHERE id = 1");
    await client.run("UPDATE account SET fence = 10 WHERE id = 2");
    const rows = await client.run("SELECT fence FROM account ORDER BY id");
    expect(rows).toEqual([{ fence: "3" }, { fence: "10" }]);
  });

  it("protects two columns whose names begin with the same 41 bytes", async () => {
    const columns = [`${"länge".repeat(8)}_first`, `${"länge".repeat(8)}_second`];
    await client.run("CREATE TABLE wide (id INT)");
    await client.run("INSERT INTO wide VALUES (1)");
    for (const column of columns) {
      await client.run(fenceColumnSql("wide", column));
      await client.run(fenceTriggerSql("wide", column));
      await client.run(fenceTriggerSql("wide", column));
    }
    for (const column of columns) {
      await client.run(`UPDATE wide SET "${column}" = 9`);
      const lower = client.run(`UPDATE wide SET "${column}" = 8`);
      expect(await rejectionOf(lower)).toMatchObject({ code: "HF412" });
    }
  });
});

describe("an update of several rows that meets a deadlock", () => {
  let pool: Pool;
  let other: PoolClient;

  beforeAll(() => {
    const { host, port, user, database } = databases.postgres;
    // The sessions of this pool look for a deadlock first, and so are its victims.
    pool = new Pool({ host, port, user, database, options: "-c deadlock_timeout=3s" });
  });

  afterAll(async () => {
    await pool.end();
  });

  beforeEach(async () => {
    await pool.query("DROP TABLE IF EXISTS invoice");
    await pool.query("CREATE TABLE invoice (id INT, open BOOLEAN DEFAULT true, note TEXT)");
    await pool.query("INSERT INTO invoice VALUES (42), (43)");
    await pool.query(fenceColumnSql("invoice"));
    other = await pool.connect();
    await other.query("BEGIN");
    await other.query("SET LOCAL deadlock_timeout = '10min'");
    await other.query("UPDATE invoice SET note = 'other' WHERE id = 43");
  });

  async function waiting(): Promise<void> {
    for (let count = 0; count === 0;) {
      const { rows } = await pool.query(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      count = rows.length;
    }
  }

  const both = { table: "invoice", set: { note: "both" }, where: { open: true } };

  it("is sent again, because nothing of it was done", async () => {
    const update = fencedUpdate(pool, 7n, both);
    await waiting();
    await other.query("UPDATE invoice SET note = 'other' WHERE id = 42");
    await other.query("COMMIT");
    other.release();
    expect(await update).toEqual({ updated: 2 });
    const { rows } = await pool.query("SELECT note, fence FROM invoice");
    expect(rows).toEqual([
      { note: "both", fence: "7" },
      { note: "both", fence: "7" },
    ]);
  });

  it("passes the server's error on inside a transaction, which is over", async () => {
    const session = await pool.connect();
    await session.query("BEGIN");
    const update = rejectionOf(fencedUpdate(session, 7n, both));
    await waiting();
    await other.query("UPDATE invoice SET note = 'other' WHERE id = 42");
    expect(await update).toMatchObject({ code: "40P01" });
    await session.query("ROLLBACK");
    session.release();
    await other.query("COMMIT");
    other.release();
  });
});
