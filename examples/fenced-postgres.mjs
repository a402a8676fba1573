/**
 * A row of Postgres that refuses writes of late holders. Runs on PGlite inside this process, or on
 * the server of `DATABASE_URL` in a temporary table.
 */

import assert from "node:assert/strict";
import { createLocks, FenceRejectedError } from "holdfast";
import { fenceColumnSql, fencedUpdate } from "holdfast/fencing/postgres";
import { memory } from "holdfast/memory";

const { db, close } = await connect();
await db.query("CREATE TEMPORARY TABLE account (id int PRIMARY KEY, balance int NOT NULL)");
await db.query(fenceColumnSql("account")); // in your project: a migration
await db.query("INSERT INTO account (id, balance) VALUES (7, 100)");

// In your project: redis(client) or redlock(clients), so that other machines share the locks.
const locks = createLocks(memory());

// The first holder reads, and then stops for longer than its lease lasts.
const slow = await locks.acquire("account:7", { ttl: "100ms", label: "slow" });
const balanceSeenBySlow = await balance();
block(150);

// Meanwhile the next holder gets the lock with a greater fence, and writes.
await locks.using("account:7", async (lease) => {
  await fencedUpdate(db, lease, {
    table: "account",
    where: { id: 7 },
    set: { balance: (await balance()) + 50 },
  });
  console.log(`next: fence ${lease.fence}, balance ${await balance()}`);
});

// The first holder resumes and writes its old result. UPDATE … WHERE fence <= $1 finds no row.
const late = fencedUpdate(db, slow, {
  table: "account",
  where: { id: 7 },
  set: { balance: balanceSeenBySlow + 10 },
});
await assert.rejects(late, (error) => {
  assert.ok(error instanceof FenceRejectedError);
  console.log(`slow: fence ${error.fence} is refused, ${error.seen} has written`);
  return true;
});
assert.equal(await balance(), 150);
console.log(`balance ${await balance()}: nothing was lost`);

await locks.close();
await close();

async function balance() {
  const { rows } = await db.query("SELECT balance FROM account WHERE id = 7");
  return rows[0].balance;
}

async function connect() {
  const connectionString = process.env["DATABASE_URL"];
  if (connectionString === undefined) {
    const { PGlite } = await import("@electric-sql/pglite");
    const db = new PGlite();
    return { db, close: () => db.close() };
  }
  const { default: pg } = await import("pg");
  const db = new pg.Client({ connectionString });
  await db.connect();
  return { db, close: () => db.end() };
}

/**
 * Blocks the only thread of this process, as a long computation or pause would.
 *
 * @param {number} ms
 */
function block(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
