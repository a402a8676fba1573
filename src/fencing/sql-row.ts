import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { isObject } from "./guard.ts";

/**
 * Name of a table as the server stores it, including upper and lower case. Dots separate schema and
 * table. Pass a name that itself contains a dot as a list: `["billing", "odd.name"]`.
 */
export type TableName = string | readonly string[];

/** The row that carries the fence. */
export interface FencedRow {
  readonly table: TableName;
  /** Columns and values that select the row; `null` means IS NULL. Must not be empty. */
  readonly where: Readonly<Record<string, unknown>>;
  /** Column that holds the fence. @default "fence" */
  readonly column?: string;
  /** Resource to name in the error of a stale write. @default the first resource of the lease */
  readonly resource?: string;
}

export interface FencedUpdate extends FencedRow {
  /** Columns and their new values, without the fence column: the guard sets that. */
  readonly set: Readonly<Record<string, unknown>>;
}

export interface FencedUpdateResult {
  /** Number of rows updated; 0 if no row matches `where`. A stale fence throws instead. */
  readonly updated: number;
}

/** A row with checked names and values. Names are not quoted yet. */
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
  // No server allows a zero character in a name, and on some it ends the statement.
  if (typeof name === "string" && name.length > 0 && !name.includes("\0")) return name;
  throw new InvalidOptionError(option, "a name that is not empty", name);
}

function namedRow(row: FencedRow): CheckedRow {
  const where = checkedColumns("where", row.where);
  if (where.length === 0) {
    // Without a condition every row would be locked, and one greater fence would reject all.
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
    // Drivers convert undefined to NULL or fail. Such a mistake must not reach the row.
    if (value === undefined || typeof value === "function" || typeof value === "symbol") {
      throw new InvalidOptionError(`${option}.${column}`, "a value or null", value);
    }
    return [checkedName(option, column), value] as const;
  });
}
