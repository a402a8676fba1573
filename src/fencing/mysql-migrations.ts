import { guardTableDefault } from "./guard-table.ts";
import { quoted, quotedTable } from "./mysql-session.ts";
import { checkedName, tableParts, type TableName } from "./sql-row.ts";

/**
 * Returns the SQL that adds the column which `fencedUpdate` compares, for an InnoDB table. Run it
 * once: it fails if the column exists (MySQL has no IF NOT EXISTS here).
 */
export function fenceColumnSql(table: TableName, column = "fence"): string {
  const name = quoted(checkedName("column", column));
  return (
    `ALTER TABLE ${quotedTable(tableParts(table))} ADD COLUMN ` +
    `${name} BIGINT NOT NULL DEFAULT 0 CHECK (${name} >= 0)`
  );
}

/** Returns the SQL that creates the table which `guardFence` and `mysqlFences` use. */
export function guardTableSql(table: TableName = guardTableDefault): string {
  // VARBINARY, because collations ignore case, accents and trailing spaces and would merge two
  // resources. InnoDB, because the guard needs row locks.
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    "(`resource` VARBINARY(512) NOT NULL PRIMARY KEY, " +
    "`fence` BIGINT NOT NULL DEFAULT 0 CHECK (`fence` >= 0)) ENGINE=InnoDB"
  );
}
