import { InvalidOptionError, StoreError } from "../core/errors.ts";
import { fenceOf, isObject, rejection, subjectOf, type Fenced } from "./guard.ts";
import { anySession, type MysqlDatabase } from "./mysql-session.ts";
import { checkScalars, lockedFences } from "./mysql-statements.ts";
import { checkedRow, type FencedRow, type FencedUpdateResult } from "./sql-row.ts";

/** Result of a statement: a row count, the header of mysql2, or its `[header, fields]`. */
export type MysqlOutcome =
  | number
  | { readonly affectedRows: number }
  | readonly [{ readonly affectedRows: number }, ...unknown[]];

/**
 * Checks the outcome of hand-written SQL: `UPDATE … SET …, fence = ? WHERE … AND fence <= ?`. Pass
 * the result of the statement as `outcome`.
 *
 * If no row was updated, reads the fences of the rows. Rejects with FenceRejectedError if a row has
 * a greater fence, and with StoreError if the fence of a row is NULL: for NULL, `fence <= ?` is
 * never true. Otherwise resolves to `{ updated: 0 }`: the row is missing or, without
 * CLIENT_FOUND_ROWS, already had these values.
 */
export async function assertFenced(
  db: MysqlDatabase,
  fenced: Fenced | bigint,
  outcome: MysqlOutcome,
  row: FencedRow,
): Promise<FencedUpdateResult> {
  const checked = checkedRow(row);
  checkScalars(checked.where);
  const fence = fenceOf(fenced);
  const resource = subjectOf(fenced, row.resource, checked.table.join("."));
  const updated = countOf(outcome);
  if (updated > 0) return { updated };
  const { greatest, someNull } = await lockedFences(anySession(db), checked);
  if (greatest > fence) {
    throw rejection(fenced, { resource, fence, seen: greatest, guard: "mysql" });
  }
  if (someNull) {
    throw new StoreError(
      `${checked.table.join(".")}.${checked.column} is NULL, so that \`${checked.column} <= …\` ` +
        `is never true and nothing was written: compare COALESCE(${checked.column}, 0), or make ` +
        "the column NOT NULL DEFAULT 0",
    );
  }
  return { updated: 0 };
}

function countOf(outcome: MysqlOutcome): number {
  const given: unknown = Array.isArray(outcome) ? outcome[0] : outcome;
  const count: unknown = isObject(given) ? given["affectedRows"] : given;
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
  throw new InvalidOptionError("outcome", "a number of rows, or a result that has it", outcome);
}
