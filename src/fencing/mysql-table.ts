import { StoreError } from "../core/errors.ts";
import { errorNumber } from "./driver-errors.ts";
import { type Row, type Session } from "./mysql-session.ts";

/** Checks of a table that a guard needs and that MySQL does not make by itself. */

const checkedTables = new WeakMap<object, Set<string>>();

/**
 * Throws StoreError if the table has no transactions (MyISAM, Aria), or if its fence column is no
 * BIGINT: an INT would hold the same greatest number for every fence. Queries the server once per
 * table and pool or connection. Accepts a missing table and a view: the next statement on them
 * fails if they cannot be used.
 *
 * Call it after the first locking statement of a transaction, because its query may fix the
 * snapshot.
 */
export async function checkTable(
  session: Session,
  table: readonly string[],
  column: string,
): Promise<void> {
  const key = JSON.stringify([table, column]);
  if (checkedTables.get(session.owner)?.has(key) === true) return;
  const row = await describe(session, table, column);
  const name = table.join(".");
  const engine = row?.["engine"];
  if (typeof engine === "string" && row?.["transactions"] !== "YES") {
    throw new StoreError(
      `table "${name}" has the engine ${engine}, which has no transactions: ` +
        "ALTER TABLE … ENGINE=InnoDB",
    );
  }
  const type = typeof row?.["type"] === "string" ? row["type"].toLowerCase() : undefined;
  if (type !== undefined && type !== "bigint" && type !== "decimal") {
    throw new StoreError(
      `column "${column}" of table "${name}" is ${type}, and a fence needs BIGINT: ` +
        `ALTER TABLE … MODIFY ${column} BIGINT NOT NULL DEFAULT 0`,
    );
  }
  const names = checkedTables.get(session.owner) ?? new Set();
  checkedTables.set(session.owner, names.add(key));
}

async function describe(
  session: Session,
  table: readonly string[],
  column: string,
): Promise<Row | undefined> {
  const name = table.at(-1) ?? "";
  const schema = table.length > 1 ? "?" : "DATABASE()";
  const schemaParams = table.slice(0, -1).slice(-1);
  // Schema and name stand in each condition, because the server then opens only this table.
  const rows = await session.select(
    "SELECT t.TABLE_NAME AS `name`, t.ENGINE AS `engine`, e.TRANSACTIONS AS `transactions`, " +
      "c.DATA_TYPE AS `type` FROM information_schema.TABLES t " +
      "LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE " +
      `LEFT JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = ${schema} ` +
      "AND c.TABLE_NAME = ? AND c.COLUMN_NAME = ? AND c.TABLE_NAME = t.TABLE_NAME " +
      `WHERE t.TABLE_SCHEMA = ${schema} AND t.TABLE_NAME = ? AND t.TABLE_TYPE = 'BASE TABLE'`,
    [...schemaParams, name, column, ...schemaParams, name],
  );
  return rows.find((row) => row["name"] === name) ?? rows[0];
}

/** Runs a statement of the row guard. Explains the error of a missing fence column. */
export async function withColumnHint<Result>(
  row: { readonly table: readonly string[]; readonly column: string },
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
