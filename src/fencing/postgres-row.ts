import { StoreError } from "../core/errors.ts";
import { parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { sqlState } from "./driver-errors.ts";
import { loweringOf, type LowerFenceResult } from "./lower-fence.ts";
import { plausibleFence } from "./plausible-fence.ts";
import { withColumnHint } from "./postgres-column.ts";
import { postgresMs, type PostgresDatabase, queryOf } from "./postgres-query.ts";
import type { Row, RunQuery } from "./postgres-query.ts";
import { deleteStatement, lowerStatement, type Statement } from "./postgres-statements.ts";
import { updateStatement, upsertStatement } from "./postgres-statements.ts";
import { checkedRow, checkedUpdate, checkedUpsert, type CheckedRow } from "./sql-row.ts";
import type { FencedDeleteResult, FencedRowDelete, FencedUpdate } from "./sql-row.ts";
import type {
  FencedUpdateResult,
  FencedUpsert,
  FencedUpsertResult,
  LoweredRow,
} from "./sql-row.ts";

const deadlockTries = 4;
const upsertTries = 8;

/**
 * Updates a row that carries its own fence, in one statement. Accepts if the fence is not smaller
 * than the row's, and stores it in the row. Works with or without a transaction.
 *
 * If `where` matches several rows, all of them change or, if one has a greater fence, none. Rejects
 * with FenceRejectedError if the fence is stale, and with FenceAheadError if it is greater than
 * `maxFenceAhead` allows. Inside a transaction, rejects with the server's error 40P01 (deadlock) or
 * 40001 (serialization failure) if the transaction must be repeated.
 */
export async function fencedUpdate(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  update: FencedUpdate,
): Promise<FencedUpdateResult> {
  const checked = checkedUpdate(update);
  const make = (fence: bigint): Statement => updateStatement(checked, fence);
  return { updated: (await changeRows(db, fenced, update, checked, make)).changed };
}

/**
 * Deletes a row that carries its own fence, under the rule of `fencedUpdate`. The fence is deleted
 * with the row, so a stale `fencedUpsert` could insert the row again. If a deleted row may be
 * inserted again later, use `guardFence`, or mark the row as deleted by `fencedUpdate`.
 */
export async function fencedDelete(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  row: FencedRowDelete,
): Promise<FencedDeleteResult> {
  const checked = checkedRow(row, "maxFenceAhead");
  const make = (fence: bigint): Statement => deleteStatement(checked, fence);
  return { deleted: (await changeRows(db, fenced, row, checked, make)).changed };
}

/**
 * Inserts a row with its fence, or updates it under the rule of `fencedUpdate`. Rejects with
 * StoreError if a unique index on other columns than `key` prevents the insert.
 */
export async function fencedUpsert(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  upsert: FencedUpsert,
): Promise<FencedUpsertResult> {
  const checked = checkedUpsert(upsert);
  const make = (fence: bigint): Statement => upsertStatement(checked, fence);
  // If another session inserts the row meanwhile, the statement neither finds nor inserts the row.
  // The statement is then repeated.
  for (let tries = 1; tries <= upsertTries; tries += 1) {
    const { changed, inserted } = await changeRows(db, fenced, upsert, checked, make);
    if (inserted + changed > 0) return { inserted: inserted > 0 };
  }
  const columns = checked.where.map(([column]) => column).join(", ");
  throw new StoreError(
    `no row of "${checked.table.join(".")}" has this key (${columns}), and a unique index on ` +
      "other columns prevents that it is inserted",
  );
}

/**
 * Replaces the fence of each matching row by the fence of `fenced`, if the row's fence is greater
 * than `maxFenceAhead` allows. Pass a lease that was acquired after the accident.
 */
export async function lowerFence(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  row: LoweredRow,
): Promise<LowerFenceResult> {
  const checked = checkedRow(row, "maxFenceAhead");
  const query = queryOf(db);
  const resource = subjectOf(fenced, row.resource, checked.table.join("."));
  const clock = (): Promise<number> => postgresMs(query);
  const { fence, limit } = await loweringOf(fenced, resource, row.maxFenceAhead, clock);
  const statement = lowerStatement(checked, fence, limit);
  const rows = await withColumnHint(checked, () => query(statement.text, [...statement.params]));
  return { lowered: rows.length };
}

async function changeRows(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  options: Pick<FencedUpdate, "resource" | "maxFenceAhead">,
  checked: CheckedRow,
  make: (fence: bigint) => Statement,
): Promise<{ readonly changed: number; readonly inserted: number }> {
  const query = queryOf(db);
  const resource = subjectOf(fenced, options.resource, checked.table.join("."));
  const clock = (): Promise<number> => postgresMs(query);
  const fence = await plausibleFence(fenced, resource, options.maxFenceAhead, clock);
  const statement = make(fence);
  const [row] = await withColumnHint(checked, () => runAgainAfterDeadlock(query, statement));
  if (row === undefined) throw new StoreError("the statement of the guard returned no row");
  const { seen } = row;
  if (typeof seen === "string") {
    const greatest = parseFence(seen, `${checked.table.join(".")}.${checked.column}`);
    if (greatest > fence) {
      throw rejection(fenced, { resource, fence, seen: greatest, guard: "postgres" });
    }
  }
  return { changed: Number(row["changed"]), inserted: Number(row["inserted"]) };
}

/**
 * Sends the statement again after a deadlock (40P01): two statements that match several rows may
 * lock the rows in different order. Outside a transaction, a deadlock undoes the whole statement.
 * Inside a transaction the repetition fails with 25P02, and the caller receives the error of the
 * deadlock.
 */
async function runAgainAfterDeadlock(
  query: RunQuery,
  { text, params }: Statement,
): Promise<readonly Row[]> {
  let deadlock = new Error("no try was made");
  for (let tries = 1; tries <= deadlockTries; tries += 1) {
    try {
      return await query(text, [...params]);
    } catch (error) {
      if (tries > 1 && sqlState(error) === "25P02") throw deadlock;
      if (sqlState(error) !== "40P01" || !(error instanceof Error)) throw error;
      deadlock = error;
    }
  }
  throw deadlock;
}
