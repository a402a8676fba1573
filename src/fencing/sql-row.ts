import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import type { Duration } from "../core/time/durations.ts";
import { isObject } from "./guard.ts";
import type { FenceLimitOptions } from "./plausible-fence.ts";
import { isExpression } from "./sql-expression.ts";

/**
 * Name of a table as the server stores it, including upper and lower case. Dots separate schema and
 * table. Pass a name that itself contains a dot as a list: `["billing", "odd.name"]`.
 */
export type TableName = string | readonly string[];

interface FencedTable {
  readonly table: TableName;
  /** Column that holds the fence. @default "fence" */
  readonly column?: string;
  /** Resource to name in the error of a stale write. @default the first resource of the lease */
  readonly resource?: string;
}

/** The row that carries the fence. */
export interface FencedRow extends FencedTable {
  /** Columns and values that select the row; `null` means IS NULL. Must not be empty. */
  readonly where: Readonly<Record<string, unknown>>;
}

export interface FencedUpdate extends FencedRow, FenceLimitOptions {
  /**
   * Columns and their new values, without the fence column, which the guard sets. A value may be an
   * `expression`.
   */
  readonly set: Readonly<Record<string, unknown>>;
}

export interface FencedUpdateResult {
  /** Number of rows updated; 0 if no row matches `where`. A stale fence throws instead. */
  readonly updated: number;
}

export interface FencedUpsert extends FencedTable, FenceLimitOptions {
  /** Columns and values that identify the row. The table has a unique index on these columns. */
  readonly key: Readonly<Record<string, unknown>>;
  /** Columns and values to write, whether the row exists or not; without the fence column. */
  readonly set: Readonly<Record<string, unknown>>;
  /**
   * More columns for a new row only. If `set` gives a column an `expression`, its value in a new
   * row must stand here.
   */
  readonly insert?: Readonly<Record<string, unknown>>;
}

export interface FencedUpsertResult {
  /** True if the row is new, false if it was updated. */
  readonly inserted: boolean;
}

export interface FencedRowDelete extends FencedRow, FenceLimitOptions {}

export interface FencedDeleteResult {
  /** Number of rows deleted; 0 if no row matches `where`. A stale fence throws instead. */
  readonly deleted: number;
}

export interface LoweredRow extends FencedRow {
  /**
   * How far in the future a stored fence, as a time in microseconds since 1970, may be. A greater
   * one was never granted, and would reject every holder for good: this write replaces it.
   * @default "24h"
   */
  readonly maxFenceAhead?: Duration;
}

export type Columns = readonly (readonly [column: string, value: unknown])[];

/** A row with checked names and values. Names are not quoted yet. */
export interface CheckedRow {
  readonly table: readonly string[];
  readonly where: Columns;
  readonly column: string;
}

export interface CheckedUpdate extends CheckedRow {
  readonly set: Columns;
}

export interface CheckedUpsert extends CheckedUpdate {
  /** Columns of a new row, without the fence column. */
  readonly insert: Columns;
}

const rowOptions = ["table", "where", "column", "resource"];

/**
 * Checks the row. Throws InvalidOptionError for options that are neither `rowOptions` nor in
 * `more`.
 */
export function checkedRow(row: FencedRow, ...more: readonly string[]): CheckedRow {
  knownOptions("options", row, [...rowOptions, ...more]);
  return namedRow(row, "where", row.where);
}

export function checkedUpdate(update: FencedUpdate): CheckedUpdate {
  const row = checkedRow(update, "set", "maxFenceAhead");
  return { ...row, set: checkedColumns("set", update.set, row.column) };
}

export function checkedUpsert(upsert: FencedUpsert): CheckedUpsert {
  const names = ["table", "key", "set", "insert", "column", "resource", "maxFenceAhead"];
  knownOptions("options", upsert, names);
  const row = namedRow(upsert, "key", upsert.key);
  const set = checkedColumns("set", upsert.set, row.column);
  const extra = checkedColumns("insert", upsert.insert ?? {}, row.column);
  const given = new Map([...row.where, ...set, ...extra]);
  for (const [column, value] of row.where) {
    if (value === null || given.get(column) !== value) {
      const expected = `only in \`key\`, with a value: it identifies the row`;
      throw new InvalidOptionError(column, expected, given.get(column));
    }
  }
  for (const [column, value] of given) {
    if (!isExpression(value)) continue;
    throw new InvalidOptionError(`insert.${column}`, "the value of a new row", undefined);
  }
  return { ...row, set, insert: [...given] };
}

export function tableParts(table: TableName): readonly string[] {
  const parts: readonly unknown[] = typeof table === "string" ? table.split(".") : table;
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > 3) {
    throw new InvalidOptionError("table", "a name, or a list of up to three name parts", table);
  }
  return parts.map((part) => checkedName("table", part));
}

export function checkedName(option: string, name: unknown): string {
  // No server allows a zero character in a name, and on some servers it ends the statement.
  if (typeof name === "string" && name.length > 0 && !name.includes("\0")) return name;
  throw new InvalidOptionError(option, "a name that is not empty", name);
}

function namedRow(row: FencedTable, option: string, condition: unknown): CheckedRow {
  const where = checkedColumns(option, condition);
  if (where.length === 0) {
    // Without a condition every row would be locked, and one greater fence would reject the whole
    // call.
    throw new InvalidOptionError(option, "at least one column with its value", condition);
  }
  const column = checkedName("column", row.column ?? "fence");
  return { table: tableParts(row.table), where, column };
}

/**
 * Checks columns and their values: those to write if `fenceColumn` is given (it must not be among
 * them), otherwise those to compare.
 */
function checkedColumns(option: string, columns: unknown, fenceColumn?: string): Columns {
  if (!isObject(columns) || Array.isArray(columns)) {
    throw new InvalidOptionError(option, "an object of columns and values", columns);
  }
  return Object.entries(columns).map(([column, value]) => {
    if (column === fenceColumn) {
      throw new InvalidOptionError(option, `without "${column}": the guard sets it`, column);
    }
    const name = `${option}.${column}`;
    // Drivers convert undefined to NULL or fail. An undefined value is a mistake and must not
    // change the row.
    if (value === undefined || typeof value === "function" || typeof value === "symbol") {
      throw new InvalidOptionError(name, "a value or null", value);
    }
    if (isExpression(value) && option !== "set") {
      throw new InvalidOptionError(name, "a value: only `set` takes an expression", value);
    }
    return [checkedName(option, column), value] as const;
  });
}
