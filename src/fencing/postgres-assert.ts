import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { fenceOf, isObject, parseFence, rejection, subjectOf, type Fenced } from "./guard.ts";
import { withColumnHint } from "./postgres-column.ts";
import { type PostgresDatabase, queryOf } from "./postgres-query.ts";
import { fencesStatement } from "./postgres-statements.ts";
import { checkedRow, type FencedRow, type FencedUpdateResult } from "./sql-row.ts";

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
 * If no row was updated, reads the fences of the rows. Rejects with FenceRejectedError if a row has
 * a greater fence, and with StoreError if the fence of a row is NULL: for NULL, `fence <= $1` is
 * never true. Otherwise resolves to `{ updated: 0 }`, for example for a missing row.
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
  const { text, params } = fencesStatement(checked);
  const [found] = await withColumnHint(checked, () => query(text, [...params]));
  const where = `${checked.table.join(".")}.${checked.column}`;
  const seen = typeof found?.["seen"] === "string" ? parseFence(found["seen"], where) : 0n;
  if (seen > fence) throw rejection(fenced, { resource, fence, seen, guard: "postgres" });
  if (Number(found?.["blank"] ?? 0) > 0) {
    throw new StoreError(
      `${where} is NULL, so that \`${checked.column} <= …\` is never true and nothing was ` +
        `written: compare COALESCE(${checked.column}, 0), or make the column NOT NULL DEFAULT 0`,
    );
  }
  return { updated: 0 };
}

function countOf(outcome: PostgresOutcome): number {
  const given: unknown = outcome;
  let count: unknown = given;
  if (isObject(given)) count = given["rowCount"] ?? given["count"] ?? given["affectedRows"];
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
  throw new InvalidOptionError("outcome", "a number of rows, or a result that has it", outcome);
}
