import { InvalidOptionError } from "../core/errors.ts";
import { isObject, parseFence } from "./guard.ts";
import { quoted, quotedTable, type Session } from "./mysql-session.ts";
import { withColumnHint } from "./mysql-table.ts";
import { isExpression, renderExpression } from "./sql-expression.ts";
import type { CheckedRow, CheckedUpdate, CheckedUpsert, Columns } from "./sql-row.ts";

/** Fences of the rows that a call selects. */
export interface RowFences {
  readonly fences: readonly bigint[];
  readonly greatest: bigint;
  readonly someNull: boolean;
}

/**
 * Locks the rows and returns their fences. A locking read returns the newest committed rows, where
 * a plain SELECT could return an old snapshot.
 */
export async function lockedFences(session: Session, row: CheckedRow): Promise<RowFences> {
  const { text, params } = condition(row.where);
  const column = quoted(row.column);
  const rows = await withColumnHint(row, () =>
    session.select(
      // The fence is read as text, because drivers by default read a BIGINT as a double.
      `SELECT CAST(${column} AS CHAR) AS seen FROM ${quotedTable(row.table)} ` +
        `WHERE ${text} FOR UPDATE`,
      params,
    ),
  );
  const where = `${row.table.join(".")}.${row.column}`;
  const fences = rows.map(({ seen }) => (seen === null ? 0n : parseFence(seen, where)));
  return {
    fences,
    greatest: fences.reduce((greatest, each) => (each > greatest ? each : greatest), 0n),
    someNull: rows.some(({ seen }) => seen === null),
  };
}

export async function updateRows(
  session: Session,
  update: CheckedUpdate,
  fence: bigint,
): Promise<void> {
  const { text, params } = condition(update.where);
  const column = quoted(update.column);
  const values: unknown[] = [];
  const set = update.set.map(([name, value]) => `${quoted(name)} = ${placeholders(value, values)}`);
  set.push(`${column} = CAST(? AS SIGNED)`);
  await session.select(
    `UPDATE ${quotedTable(update.table)} SET ${set.join(", ")} ` +
      // The fence is compared again: under READ COMMITTED a matching row can appear after the rows
      // were locked.
      `WHERE ${text} AND COALESCE(${column}, 0) <= CAST(? AS SIGNED)`,
    [...values, String(fence), ...params, String(fence)],
  );
}

export async function deleteRows(session: Session, row: CheckedRow, fence: bigint): Promise<void> {
  const { text, params } = condition(row.where);
  await session.select(
    `DELETE FROM ${quotedTable(row.table)} ` +
      `WHERE ${text} AND COALESCE(${quoted(row.column)}, 0) <= CAST(? AS SIGNED)`,
    [...params, String(fence)],
  );
}

export async function insertRow(
  session: Session,
  upsert: CheckedUpsert,
  fence: bigint,
): Promise<void> {
  const columns = [...upsert.insert.map(([name]) => name), upsert.column].map(quoted);
  const marks = [...upsert.insert.map(() => "?"), "CAST(? AS SIGNED)"];
  await session.select(
    `INSERT INTO ${quotedTable(upsert.table)} (${columns.join(", ")}) VALUES (${marks.join(", ")})`,
    [...upsert.insert.map(([, value]) => value), String(fence)],
  );
}

export async function lowerRows(
  session: Session,
  row: CheckedRow,
  fence: bigint,
  limit: bigint,
): Promise<void> {
  const { text, params } = condition(row.where);
  const column = quoted(row.column);
  await session.select(
    `UPDATE ${quotedTable(row.table)} SET ${column} = CAST(? AS SIGNED) ` +
      `WHERE ${text} AND ${column} > CAST(? AS SIGNED)`,
    [String(fence), ...params, String(limit)],
  );
}

/**
 * Throws InvalidOptionError for objects that each driver converts in its own way, to pieces of SQL
 * or to JSON.
 */
export function checkScalars(columns: Columns): void {
  for (const [column, value] of columns) {
    const values = isExpression(value) ? value.values : [value];
    for (const each of values) {
      if (!isObject(each) || each instanceof Date || each instanceof Uint8Array) continue;
      const expected = "a text, number, bigint, boolean, Date, Buffer or null";
      throw new InvalidOptionError(column, expected, each);
    }
  }
}

function placeholders(value: unknown, values: unknown[]): string {
  const add = (each: unknown): string => {
    values.push(each);
    return "?";
  };
  return isExpression(value) ? renderExpression(value, add) : add(value);
}

function condition(where: Columns): { readonly text: string; readonly params: unknown[] } {
  const params: unknown[] = [];
  const terms = where.map(([name, value]) =>
    value === null ? `${quoted(name)} IS NULL` : `${quoted(name)} = ${placeholders(value, params)}`,
  );
  return { text: `(${terms.join(" AND ")})`, params };
}
