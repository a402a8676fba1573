import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { fenceOf, isObject, parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { anySession, errorNumber, inTransaction, quoted, quotedTable } from "./mysql-session.ts";
import type { MysqlDatabase, Session } from "./mysql-session.ts";
import { checkedRow, checkedUpdate, type CheckedRow, type CheckedUpdate } from "./sql-row.ts";
import type { FencedRow, FencedUpdate, FencedUpdateResult } from "./sql-row.ts";

/**
 * Updates a row that carries its own fence. Accepts if the fence is not smaller than the row's, and
 * stores it in the row. A pool runs a short transaction of its own; a connection with an open
 * transaction runs the update in that.
 *
 * If `where` matches several rows, all of them change or, if one has a greater fence, none. Rejects
 * with FenceRejectedError if stale. Deadlocks and lock timeouts reject with the server's error.
 */
export async function fencedUpdate(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  update: FencedUpdate,
): Promise<FencedUpdateResult> {
  const checked = checkedUpdate(update);
  for (const [column, value] of [...checked.set, ...checked.where]) checkScalar(column, value);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, update.resource, checked.table.join("."));
  return await inTransaction(db, async (session) => {
    const fences = await lockedFences(session, checked);
    const seen = fences.reduce((greatest, each) => (each > greatest ? each : greatest), 0n);
    if (seen > fence) throw rejection(fenced, { resource, fence, seen, guard: "mysql" });
    if (fences.length > 0) await write(session, checked, fence);
    // Counted from the locked rows. The count of the UPDATE depends on CLIENT_FOUND_ROWS: without
    // it, rows that already had these values are not counted.
    return { updated: fences.length };
  });
}

/** Result of a statement: a row count, the header of mysql2, or its `[header, fields]`. */
export type MysqlOutcome =
  | number
  | { readonly affectedRows: number }
  | readonly [{ readonly affectedRows: number }, ...unknown[]];

/**
 * Checks the outcome of hand-written SQL: `UPDATE … SET …, fence = ? WHERE … AND fence <= ?`. Pass
 * the result of the statement as `outcome`.
 *
 * If no row was updated, reads the fences of the rows. Rejects with FenceRejectedError if one is
 * greater. Otherwise resolves to `{ updated: 0 }`: the row is missing or, without
 * CLIENT_FOUND_ROWS, already had these values.
 */
export async function assertFenced(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  outcome: MysqlOutcome,
  row: FencedRow,
): Promise<FencedUpdateResult> {
  const checked = checkedRow(row);
  for (const [column, value] of checked.where) checkScalar(column, value);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, row.resource, checked.table.join("."));
  const updated = countOf(outcome);
  if (updated > 0) return { updated };
  for (const seen of await lockedFences(anySession(db), checked)) {
    if (seen > fence) throw rejection(fenced, { resource, fence, seen, guard: "mysql" });
  }
  return { updated: 0 };
}

/**
 * Locks the rows and returns their fences. A locking read returns the newest committed rows, where
 * a plain SELECT could return an old snapshot.
 */
async function lockedFences(session: Session, row: CheckedRow): Promise<readonly bigint[]> {
  const { text, params } = condition(row);
  const column = quoted(row.column);
  const rows = await withColumnHint(row, () =>
    session.select(
      // Read as text, because drivers by default read a BIGINT as a double.
      `SELECT CAST(COALESCE(${column}, 0) AS CHAR) AS seen FROM ${quotedTable(row.table)} ` +
        `WHERE ${text} FOR UPDATE`,
      params,
    ),
  );
  const where = `${row.table.join(".")}.${row.column}`;
  return rows.map((found) => parseFence(found["seen"], where));
}

async function write(session: Session, update: CheckedUpdate, fence: bigint): Promise<void> {
  const { text, params } = condition(update);
  const column = quoted(update.column);
  const set = update.set.map(([name]) => `${quoted(name)} = ?`);
  set.push(`${column} = CAST(? AS SIGNED)`);
  const values = update.set.map(([, value]) => value);
  await session.select(
    `UPDATE ${quotedTable(update.table)} SET ${set.join(", ")} ` +
      // Compared again: under READ COMMITTED a matching row can appear after the lock.
      `WHERE ${text} AND COALESCE(${column}, 0) <= CAST(? AS SIGNED)`,
    [...values, String(fence), ...params, String(fence)],
  );
}

function condition(row: CheckedRow): { readonly text: string; readonly params: unknown[] } {
  const params: unknown[] = [];
  const terms = row.where.map(([name, value]) => {
    if (value === null) return `${quoted(name)} IS NULL`;
    params.push(value);
    return `${quoted(name)} = ?`;
  });
  return { text: `(${terms.join(" AND ")})`, params };
}

/** Rejects objects that each driver converts in its own way, to pieces of SQL or to JSON. */
function checkScalar(column: string, value: unknown): void {
  if (!isObject(value) || value instanceof Date || value instanceof Uint8Array) return;
  throw new InvalidOptionError(
    column,
    "a text, number, bigint, boolean, Date, Buffer or null",
    value,
  );
}

function countOf(outcome: MysqlOutcome): number {
  const given: unknown = Array.isArray(outcome) ? outcome[0] : outcome;
  const count: unknown = isObject(given) ? given["affectedRows"] : given;
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
  throw new InvalidOptionError("outcome", "a number of rows or a result that tells it", outcome);
}

async function withColumnHint<Result>(
  row: CheckedRow,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const missing = errorNumber(error) === 1054 && String(error).includes(`'${row.column}'`);
    if (!missing) throw error;
    const name = row.table.join(".");
    throw new StoreError(
      `table "${name}" has no column "${row.column}" to keep the fence in: ` +
        `run the statement of fenceColumnSql("${name}", "${row.column}") once`,
      { cause: error },
    );
  }
}
