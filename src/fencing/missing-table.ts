import { StoreError } from "../core/errors.ts";
import { errorNumber, sqlState } from "./driver-errors.ts";

/** What to say if a table does not exist. */
export interface TableHint {
  /** Name of the table with its schema. */
  readonly table: string;
  /** Name that the function below takes if it is called without one. */
  readonly tableDefault: string;
  /** Function of this package that returns the SQL of the table. */
  readonly sqlFunction: string;
  /** @default "table" */
  readonly what?: string;
}

/** Runs a statement on Postgres. Throws StoreError if the table or its schema does not exist. */
export function onPostgresTable<Result>(
  hint: TableHint,
  run: () => Promise<Result>,
): Promise<Result> {
  // 42P01: the table does not exist. 3F000: its schema does not exist.
  return explained(hint, run, (error) => ["42P01", "3F000"].includes(sqlState(error) ?? ""));
}

/** Runs a statement on MySQL or MariaDB. Throws StoreError if the table does not exist. */
export function onMysqlTable<Result>(hint: TableHint, run: () => Promise<Result>): Promise<Result> {
  return explained(hint, run, (error) => errorNumber(error) === 1146);
}

async function explained<Result>(
  { table, tableDefault, sqlFunction, what = "table" }: TableHint,
  run: () => Promise<Result>,
  isMissing: (error: unknown) => boolean,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!isMissing(error)) throw error;
    const argument = table === tableDefault ? "" : JSON.stringify(table);
    const remedy = `run the statement of ${sqlFunction}(${argument}) once`;
    throw new StoreError(`the ${what} "${table}" does not exist: ${remedy}`, { cause: error });
  }
}
