import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { fenceOf, isObject, parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { type PostgresDatabase, queryOf, quoted, quotedTable, sqlState } from "./postgres-query.ts";
import type { Row, RunQuery } from "./postgres-query.ts";
import { checkedRow, checkedUpdate, type CheckedRow, type CheckedUpdate } from "./sql-row.ts";
import type { FencedRow, FencedUpdate, FencedUpdateResult } from "./sql-row.ts";

/**
 * Updates a row that carries its own fence, in one statement. Accepts if the fence is not smaller
 * than the row's, and stores it in the row. Works with or without a transaction.
 *
 * If `where` matches several rows, all of them change or, if one has a greater fence, none. Rejects
 * with FenceRejectedError if stale. Rejects with the server's error 40001 if a REPEATABLE READ or
 * SERIALIZABLE transaction must be retried.
 */
export async function fencedUpdate(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  update: FencedUpdate,
): Promise<FencedUpdateResult> {
  const checked = checkedUpdate(update);
  const query = queryOf(db);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, update.resource, checked.table.join("."));
  const { text, params } = updateStatement(checked, fence);
  const [row] = await withColumnHint(checked, () => query(text, params));
  if (row === undefined) throw new StoreError("the fenced update returned no row");
  const seen = fenceSeen(row, checked);
  if (seen !== undefined && seen > fence) {
    throw rejection(fenced, { resource, fence, seen, guard: "postgres" });
  }
  return { updated: Number(row["updated"]) };
}

/** Result of a statement: `rowCount` (pg), `count` (postgres) or `affectedRows` (PGlite). */
export type PostgresOutcome =
  | number
  | { readonly rowCount: number | null }
  | { readonly count: number }
  | { readonly affectedRows?: number };

/**
 * Checks the outcome of hand-written SQL: `UPDATE … SET …, fence = $1 WHERE … AND fence <= $1`.
 * Pass the result of the statement as `outcome`.
 *
 * If no row was updated, reads the fences of the rows. Rejects with FenceRejectedError if one is
 * greater; resolves to `{ updated: 0 }` if not, for example for a missing row.
 */
export async function assertFenced(
  db: PostgresDatabase,
  fenced: Fenced | bigint,
  outcome: PostgresOutcome,
  row: FencedRow,
): Promise<FencedUpdateResult> {
  const checked = checkedRow(row);
  const query = queryOf(db);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, row.resource, checked.table.join("."));
  const updated = countOf(outcome);
  if (updated > 0) return { updated };
  const params: unknown[] = [];
  const text =
    `SELECT max(COALESCE(${quoted(checked.column)}, 0))::text AS seen ` +
    `FROM ${quotedTable(checked.table)} WHERE ${condition(checked, params)}`;
  const [found] = await withColumnHint(checked, () => query(text, params));
  const seen = found === undefined ? undefined : fenceSeen(found, checked);
  if (seen !== undefined && seen > fence) {
    throw rejection(fenced, { resource, fence, seen, guard: "postgres" });
  }
  return { updated: 0 };
}

/**
 * Builds the statement. `target` locks the rows and reads their newest fences. `changed` updates
 * them only if no fence is greater. `changed` compares the fence again: under READ COMMITTED only
 * re-checked conditions see what was committed while the statement waited for the lock.
 */
function updateStatement(
  update: CheckedUpdate,
  fence: bigint,
): { readonly text: string; readonly params: unknown[] } {
  const params: unknown[] = [String(fence)];
  const table = quotedTable(update.table);
  const column = quoted(update.column);
  const where = condition(update, params);
  const set = update.set.map(([name, value]) => {
    params.push(value);
    return `${quoted(name)} = $${params.length}`;
  });
  set.push(`${column} = $1::bigint`);
  const text =
    `WITH target AS (SELECT COALESCE(${column}, 0) AS seen FROM ${table} ` +
    `WHERE ${where} FOR NO KEY UPDATE), ` +
    `changed AS (UPDATE ${table} SET ${set.join(", ")} WHERE ${where} ` +
    `AND COALESCE(${column}, 0) <= $1::bigint ` +
    `AND NOT EXISTS (SELECT FROM target WHERE seen > $1::bigint) RETURNING 1) ` +
    `SELECT (SELECT count(*) FROM changed)::text AS updated, ` +
    `(SELECT max(seen) FROM target)::text AS seen`;
  return { text, params };
}

/** Adds the values to `params` and returns the condition that refers to them. */
function condition(row: CheckedRow, params: unknown[]): string {
  const terms = row.where.map(([name, value]) => {
    if (value === null) return `${quoted(name)} IS NULL`;
    params.push(value);
    return `${quoted(name)} = $${params.length}`;
  });
  return `(${terms.join(" AND ")})`;
}

function fenceSeen(row: Row, checked: CheckedRow): bigint | undefined {
  const { seen } = row as { seen?: unknown };
  if (seen === null || seen === undefined) return undefined;
  return parseFence(seen, `${checked.table.join(".")}.${checked.column}`);
}

function countOf(outcome: PostgresOutcome): number {
  const given: unknown = outcome;
  let count: unknown = given;
  if (isObject(given)) count = given["rowCount"] ?? given["count"] ?? given["affectedRows"];
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
  throw new InvalidOptionError("outcome", "a number of rows or a result that tells it", outcome);
}

async function withColumnHint(
  row: CheckedRow,
  run: () => ReturnType<RunQuery>,
): ReturnType<RunQuery> {
  try {
    return await run();
  } catch (error) {
    const missing = sqlState(error) === "42703" && String(error).includes(quoted(row.column));
    if (!missing) throw error;
    const name = row.table.join(".");
    throw new StoreError(
      `table "${name}" has no column "${row.column}" to keep the fence in: ` +
        `run the statement of fenceColumnSql("${name}", "${row.column}") once`,
      { cause: error },
    );
  }
}
