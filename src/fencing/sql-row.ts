import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { isObject } from "./guard.ts";

/**
 * The name of a table as the server stores it, case included. Dots separate schema and table; a
 * name that itself contains a dot is given as a list: `["billing", "odd.name"]`.
 */
export type TableName = string | readonly string[];

/** Which row carries the fence. */
export interface FencedRow {
  readonly table: TableName;
  /** Columns and the values that single out the row; `null` means IS NULL. Never empty. */
  readonly where: Readonly<Record<string, unknown>>;
  /** The column that holds the fence. @default "fence" */
  readonly column?: string;
  /** Named in the error of a stale write. @default the first resource of the lease */
  readonly resource?: string;
}

export interface FencedUpdate extends FencedRow {
  /** Columns and their new values. The fence column is set besides. */
  readonly set: Readonly<Record<string, unknown>>;
}

export interface FencedUpdateResult {
  /** 0 when no row matches `where`. A stale fence is never 0 but a FenceRejectedError. */
  readonly updated: number;
}

/** A row as checked: names still unquoted, every value known to be one. */
export interface CheckedRow {
  readonly table: readonly string[];
  readonly where: readonly (readonly [column: string, value: unknown])[];
  readonly column: string;
}

export interface CheckedUpdate extends CheckedRow {
  readonly set: readonly (readonly [column: string, value: unknown])[];
}

const rowOptions = ["table", "where", "column", "resource"];

export function checkedRow(row: FencedRow): CheckedRow {
  knownOptions("options", row, rowOptions);
  return namedRow(row);
}

export function checkedUpdate(update: FencedUpdate): CheckedUpdate {
  knownOptions("options", update, [...rowOptions, "set"]);
  const row = namedRow(update);
  const set = checkedColumns("set", update.set);
  if (set.some(([column]) => column === row.column)) {
    throw new InvalidOptionError("set", `without "${row.column}": the guard sets it`, row.column);
  }
  return { ...row, set };
}

export function tableParts(table: TableName): readonly string[] {
  const parts: readonly unknown[] = typeof table === "string" ? table.split(".") : table;
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > 3) {
    throw new InvalidOptionError("table", "a name, or a list of up to three name parts", table);
  }
  return parts.map((part) => checkedName("table", part));
}

export function checkedName(option: string, name: unknown): string {
  // A zero character ends the statement on some servers, and none allows it in a name.
  if (typeof name === "string" && name.length > 0 && !name.includes("\0")) return name;
  throw new InvalidOptionError(option, "a name that is not empty", name);
}

function namedRow(row: FencedRow): CheckedRow {
  const where = checkedColumns("where", row.where);
  if (where.length === 0) {
    // Every row of the table would be locked, and one greater fence anywhere would reject.
    throw new InvalidOptionError("where", "at least one column with its value", row.where);
  }
  const column = checkedName("column", row.column ?? "fence");
  return { table: tableParts(row.table), where, column };
}

function checkedColumns(
  option: string,
  columns: unknown,
): readonly (readonly [column: string, value: unknown])[] {
  if (!isObject(columns) || Array.isArray(columns)) {
    throw new InvalidOptionError(option, "an object of columns and values", columns);
  }
  return Object.entries(columns).map(([column, value]) => {
    // Drivers turn undefined into NULL or fail: a typing slip must not reach the row.
    if (value === undefined || typeof value === "function" || typeof value === "symbol") {
      throw new InvalidOptionError(`${option}.${column}`, "a value or null", value);
    }
    return [checkedName(option, column), value] as const;
  });
}
