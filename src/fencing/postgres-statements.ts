import { quoted, quotedTable } from "./postgres-query.ts";
import { isExpression, renderExpression } from "./sql-expression.ts";
import type { CheckedRow, CheckedUpdate, CheckedUpsert, Columns } from "./sql-row.ts";

/**
 * Statements of the row guard. Each guard call is one statement, so it works with and without a
 * transaction.
 *
 * Each statement has two parts. `target` locks the rows and reads their newest fences. `changed`
 * changes the rows only if no fence is greater. `changed` compares the fences again: under READ
 * COMMITTED, only conditions that the server checks again include what was committed while the
 * statement waited for the lock.
 */

export interface Statement {
  readonly text: string;
  readonly params: readonly unknown[];
}

/** Parameters of a statement. `add` returns the placeholder of a value. */
class Params {
  readonly values: unknown[] = [];

  add(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
}

export function updateStatement(update: CheckedUpdate, fence: bigint): Statement {
  const params = new Params();
  const { target, changed } = change(update, fence, params, setClause(update, params, fence));
  return { text: `WITH ${target}, ${changed} ${outcome("0")}`, params: params.values };
}

export function deleteStatement(row: CheckedRow, fence: bigint): Statement {
  const params = new Params();
  const { target, changed } = change(row, fence, params, undefined);
  return { text: `WITH ${target}, ${changed} ${outcome("0")}`, params: params.values };
}

/**
 * Returns the statement that updates the row, or inserts it if it is missing. The statement does
 * not change a row that another session has just inserted.
 */
export function upsertStatement(upsert: CheckedUpsert, fence: bigint): Statement {
  const params = new Params();
  const { target, changed } = change(upsert, fence, params, setClause(upsert, params, fence));
  const columns = [...upsert.insert, [upsert.column, String(fence)] as const];
  const inserted =
    `inserted AS (INSERT INTO ${quotedTable(upsert.table)} ` +
    `(${columns.map(([name]) => quoted(name)).join(", ")}) ` +
    `SELECT ${columns.map(([, value]) => params.add(value)).join(", ")} ` +
    `WHERE NOT EXISTS (SELECT FROM target) ON CONFLICT DO NOTHING RETURNING 1)`;
  const insertedCount = "(SELECT count(*) FROM inserted)";
  const text = `WITH ${target}, ${changed}, ${inserted} ${outcome(insertedCount)}`;
  return { text, params: params.values };
}

/**
 * Returns the statement that reads the greatest fence of the rows, and how many fences are NULL.
 */
export function fencesStatement(row: CheckedRow): Statement {
  const params = new Params();
  const column = quoted(row.column);
  const text =
    `SELECT max(COALESCE(${column}, 0))::text AS seen, ` +
    `(count(*) - count(${column}))::text AS blank ` +
    `FROM ${quotedTable(row.table)} WHERE ${condition(row.where, params)}`;
  return { text, params: params.values };
}

/**
 * Name of the setting that contains the new fence of `lowerFence`. The trigger of `fenceTriggerSql`
 * accepts an UPDATE to this fence.
 */
export const loweringSetting = "holdfast.lower_fence";

/**
 * Returns the statement that replaces fences above `limit` by `fence`. The setting in it ends with
 * the transaction of the statement.
 */
export function lowerStatement(row: CheckedRow, fence: bigint, limit: bigint): Statement {
  const params = new Params();
  const to = params.add(String(fence));
  const setting = `SELECT set_config('${loweringSetting}', ${to}::bigint::text, true) AS hf_to`;
  const column = quoted(row.column);
  const text =
    `WITH allowed AS (${setting}) UPDATE ${quotedTable(row.table)} SET ${column} = ${to}::bigint ` +
    `FROM allowed WHERE allowed.hf_to IS NOT NULL AND ${condition(row.where, params)} ` +
    `AND ${column} > ${params.add(String(limit))}::bigint RETURNING 1`;
  return { text, params: params.values };
}

/** Returns the parts `target` and `changed`. Without a SET clause, `changed` deletes the rows. */
function change(
  row: CheckedRow,
  fence: bigint,
  params: Params,
  set: string | undefined,
): { readonly target: string; readonly changed: string } {
  const table = quotedTable(row.table);
  const column = quoted(row.column);
  const limit = `${params.add(String(fence))}::bigint`;
  const where = condition(row.where, params);
  const lock = set === undefined ? "FOR UPDATE" : "FOR NO KEY UPDATE";
  const seen = `COALESCE(${column}, 0) AS seen`;
  const verb = set === undefined ? `DELETE FROM ${table}` : `UPDATE ${table} SET ${set}`;
  return {
    target: `target AS (SELECT ${seen} FROM ${table} WHERE ${where} ${lock})`,
    changed:
      `changed AS (${verb} WHERE ${where} AND COALESCE(${column}, 0) <= ${limit} ` +
      `AND NOT EXISTS (SELECT FROM target WHERE seen > ${limit}) RETURNING 1)`,
  };
}

function outcome(inserted: string): string {
  return (
    `SELECT (SELECT count(*) FROM changed)::text AS changed, (${inserted})::text AS inserted, ` +
    `(SELECT max(seen) FROM target)::text AS seen`
  );
}

function setClause(update: CheckedUpdate, params: Params, fence: bigint): string {
  const set = update.set.map(([name, value]) => {
    const text = isExpression(value)
      ? renderExpression(value, (each) => params.add(each))
      : params.add(value);
    return `${quoted(name)} = ${text}`;
  });
  set.push(`${quoted(update.column)} = ${params.add(String(fence))}::bigint`);
  return set.join(", ");
}

/** Adds the values to `params` and returns the condition that refers to them. */
function condition(where: Columns, params: Params): string {
  const terms = where.map(([name, value]) =>
    value === null ? `${quoted(name)} IS NULL` : `${quoted(name)} = ${params.add(value)}`,
  );
  return `(${terms.join(" AND ")})`;
}
