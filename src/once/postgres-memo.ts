import { StoreError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { onPostgresTable } from "../fencing/missing-table.ts";
import { guardKey, parseFence, rejection, subjectOf } from "../fencing/guard.ts";
import { plausibleFence } from "../fencing/plausible-fence.ts";
import { postgresMs, queryOf, quotedTable, statementMsSql } from "../fencing/postgres-query.ts";
import type { PostgresDatabase, Row } from "../fencing/postgres-query.ts";
import { tableParts, type TableName } from "../fencing/sql-row.ts";
import { parseState, type Memo, type MemoRecord } from "./memo.ts";

export interface MemoTableOptions {
  /** @default "holdfast_once" */
  readonly table?: TableName;
}

export const memoTableDefault = "holdfast_once";

/** Returns the SQL that creates the table of `postgresMemo`. Run it once. */
export function postgresMemoSql(table: TableName = memoTableDefault): string {
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    `("key" TEXT COLLATE "C" PRIMARY KEY, "fence" BIGINT NOT NULL, "state" TEXT NOT NULL, ` +
    `"text" TEXT NOT NULL, "until_ms" BIGINT NOT NULL)`
  );
}

/**
 * Returns a memo in a table of Postgres. Pass a pool: each call is one statement that commits at
 * once. Calls reject with StoreError if the table does not exist.
 *
 * Rows stay after their time, and keep their fences. Delete those with an old `until_ms` from time
 * to time.
 */
export function postgresMemo(db: PostgresDatabase, options: MemoTableOptions = {}): Memo {
  knownOptions("options", options, ["table"]);
  const parts = tableParts(options.table ?? memoTableDefault);
  const table = quotedTable(parts);
  const name = parts.join(".");
  const hint = { table: name, tableDefault: memoTableDefault, sqlFunction: "postgresMemoSql" };
  const query = queryOf(db);
  const columns = `memo."fence"::text AS fence, memo."state" AS state, memo."text" AS text`;
  return {
    async read(key) {
      const text =
        `SELECT ${columns} FROM ${table} AS memo ` +
        `WHERE memo."key" = $1::text AND memo."until_ms" > ${statementMsSql}`;
      const [row] = await onPostgresTable(hint, () => query(text, [guardKey(key)]));
      return row === undefined ? undefined : recordOf(row, name);
    },
    async write(lease, key, { state, text }, keepMs) {
      const resource = subjectOf(lease, undefined, key);
      const clock = (): Promise<number> => postgresMs(query);
      const fence = await plausibleFence(lease, resource, undefined, clock);
      // True if the new record replaces the stored one. The row is locked and newest here.
      const isNew =
        `(memo."fence" <= excluded."fence" AND ` +
        `NOT (memo."state" = 'done' AND memo."until_ms" > ${statementMsSql}))`;
      const set = ["fence", "state", "text", "until_ms"].map(
        (column) =>
          `"${column}" = CASE WHEN ${isNew} THEN excluded."${column}" ELSE memo."${column}" END`,
      );
      const upsert =
        `INSERT INTO ${table} AS memo ("key", "fence", "state", "text", "until_ms") ` +
        `VALUES ($1::text, $2::bigint, $3::text, $4::text, ${statementMsSql} + $5::bigint) ` +
        `ON CONFLICT ("key") DO UPDATE SET ${set.join(", ")} RETURNING ${columns}`;
      const params = [guardKey(key), String(fence), state, text, String(keepMs)];
      const [row] = await onPostgresTable(hint, () => query(upsert, params));
      // A trigger or rule suppressed the row.
      if (row === undefined) throw new StoreError(`the table "${name}" did not return its row`);
      const seen = recordOf(row, name);
      if (seen.fence > fence) {
        throw rejection(lease, { resource, fence, seen: seen.fence, guard: "postgres" });
      }
      const isStored = seen.fence === fence && seen.state === state && seen.text === text;
      return isStored ? undefined : seen;
    },
  };
}

function recordOf({ fence, state, text }: Row, table: string): MemoRecord {
  return { fence: parseFence(fence, table), state: parseState(state, table), text: String(text) };
}
