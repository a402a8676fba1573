import { earlyMsMax } from "../core/mark.ts";
import { knownOptions } from "../core/options.ts";
import { onPostgresTable } from "../fencing/missing-table.ts";
import { guardKey, subjectOf } from "../fencing/guard.ts";
import { plausibleFence } from "../fencing/plausible-fence.ts";
import { postgresMs, queryOf, quotedTable, statementMsSql } from "../fencing/postgres-query.ts";
import type { PostgresDatabase } from "../fencing/postgres-query.ts";
import { tableParts, type TableName } from "../fencing/sql-row.ts";
import type { Ledger } from "./ledger.ts";

export interface LedgerTableOptions {
  /** @default "holdfast_schedule" */
  readonly table?: TableName;
}

const tableDefault = "holdfast_schedule";

/** Returns the SQL that creates the table of `postgresLedger`. Run it once. */
export function postgresLedgerSql(table: TableName = tableDefault): string {
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    `("name" TEXT COLLATE "C" PRIMARY KEY, "value" BIGINT NOT NULL, "fence" BIGINT NOT NULL)`
  );
}

/**
 * Returns a ledger in a table of Postgres, one row per schedule. Pass a pool: each call is one
 * statement that commits at once. Calls reject with StoreError if the table does not exist.
 */
export function postgresLedger(db: PostgresDatabase, options: LedgerTableOptions = {}): Ledger {
  knownOptions("options", options, ["table"]);
  const parts = tableParts(options.table ?? tableDefault);
  const table = quotedTable(parts);
  const hint = { table: parts.join("."), tableDefault, sqlFunction: "postgresLedgerSql" };
  const query = queryOf(db);
  return {
    async last(schedule) {
      const text = `SELECT "value"::text AS value FROM ${table} WHERE "name" = $1::text`;
      const [row] = await onPostgresTable(hint, () => query(text, [guardKey(schedule)]));
      return row === undefined ? undefined : Number(row["value"]);
    },
    async raise(schedule, value, lease, dueMs) {
      const clock = (): Promise<number> => postgresMs(query);
      const subject = subjectOf(lease, undefined, schedule);
      const fence = await plausibleFence(lease, subject, undefined, clock);
      const due = `SELECT $4::bigint <= ${earlyMsMax} + ${statementMsSql} AS due`;
      const text =
        `WITH clock AS (${due}), changed AS (` +
        `INSERT INTO ${table} AS old ("name", "value", "fence") ` +
        `SELECT $1::text, $2::bigint, $3::bigint FROM clock WHERE clock.due ` +
        `ON CONFLICT ("name") DO UPDATE ` +
        `SET "value" = excluded."value", "fence" = excluded."fence" ` +
        `WHERE (excluded."value" > old."value" AND excluded."fence" >= old."fence") ` +
        `OR (excluded."value" = old."value" AND excluded."fence" = old."fence") RETURNING 1) ` +
        `SELECT clock.due::text AS due, (SELECT count(*) FROM changed)::text AS changed FROM clock`;
      const params = [guardKey(schedule), String(value), String(fence), String(dueMs)];
      const [row] = await onPostgresTable(hint, () => query(text, params));
      if (row?.["due"] === "false") return "early";
      return row?.["changed"] === "1" ? "raised" : "refused";
    },
  };
}
