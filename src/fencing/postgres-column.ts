import { StoreError } from "../core/errors.ts";
import { isObject } from "./guard.ts";
import { sqlState } from "./driver-errors.ts";
import { quoted } from "./postgres-query.ts";
import type { CheckedRow } from "./sql-row.ts";

/** Runs a statement of the row guard. Explains an error that comes from the fence column. */
export async function withColumnHint<Result>(
  row: CheckedRow,
  run: () => Promise<Result>,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    const explanation = explain(row, error);
    if (explanation === undefined) throw error;
    throw new StoreError(explanation, { cause: error });
  }
}

function explain(row: CheckedRow, error: unknown): string | undefined {
  const table = row.table.join(".");
  const column = `column "${row.column}" of table "${table}"`;
  const routine = isObject(error) ? error["routine"] : undefined;
  const toBigint = `ALTER TABLE … ALTER COLUMN ${quoted(row.column)} TYPE BIGINT`;
  switch (sqlState(error)) {
    case "42703": // undefined_column
      if (!String(error).includes(quoted(row.column))) return undefined;
      return (
        `table "${table}" has no column "${row.column}" to keep the fence in: ` +
        `run the statement of fenceColumnSql("${table}", "${row.column}") once`
      );
    case "42804": // datatype_mismatch: COALESCE(text, 0), the first thing that is parsed
      if (!String(error).includes("COALESCE")) return undefined;
      return `${column} is no number, and a fence needs BIGINT: ${toBigint} USING …`;
    case "22003": // numeric_value_out_of_range, in a cast from bigint to int or smallint
      if (routine !== "int84" && routine !== "int82") return undefined;
      return `a value is out of range. If it is ${column}, a fence needs BIGINT: ${toBigint}`;
    default:
      return undefined;
  }
}
