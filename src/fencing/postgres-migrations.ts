import { createHash } from "node:crypto";
import { fenceOf, isObject, rejection, subjectOf, type Fenced } from "./guard.ts";
import { sqlState } from "./driver-errors.ts";
import { guardTableDefault } from "./guard-table.ts";
import { quoted, quotedTable } from "./postgres-query.ts";
import { loweringSetting } from "./postgres-statements.ts";
import { checkedName, tableParts, type TableName } from "./sql-row.ts";

/** Returns the SQL that adds the column which `fencedUpdate` compares. */
export function fenceColumnSql(table: TableName, column = "fence"): string {
  const name = quoted(checkedName("column", column));
  return (
    `ALTER TABLE ${quotedTable(tableParts(table))} ADD COLUMN IF NOT EXISTS ` +
    `${name} BIGINT NOT NULL DEFAULT 0 CHECK (${name} >= 0)`
  );
}

/** Returns the SQL that creates the table which `guardFence` and `postgresFences` use. */
export function guardTableSql(table: TableName = guardTableDefault): string {
  // Collation "C" compares bytes: other collations could merge two resources or change with the
  // operating system.
  return (
    `CREATE TABLE IF NOT EXISTS ${quotedTable(tableParts(table))} ` +
    `("resource" TEXT COLLATE "C" PRIMARY KEY, ` +
    `"fence" BIGINT NOT NULL DEFAULT 0 CHECK ("fence" >= 0))`
  );
}

/** Longest name in Postgres, in bytes. */
const nameBytesMax = 63;

/** SQLSTATE that the trigger of `fenceTriggerSql` raises. */
export const fenceTriggerState = "HF412";

/**
 * Returns SQL for an optional trigger: the database itself then refuses every UPDATE that would
 * lower the fence, or set it to NULL. The trigger does not check an UPDATE that does not set the
 * fence column, and it accepts `lowerFence`. Run the statements as one script; this needs the right
 * to create a function in the table's schema.
 */
export function fenceTriggerSql(table: TableName, column = "fence"): string {
  const parts = tableParts(table);
  const fence = quoted(checkedName("column", column));
  const name = triggerName(column);
  const functionName = quotedTable([...parts.slice(0, -1), name]);
  const target = quotedTable(parts);
  const body =
    `BEGIN IF COALESCE(NEW.${fence}, 0) < COALESCE(OLD.${fence}, 0) ` +
    `AND COALESCE(current_setting('${loweringSetting}', true), '') <> ` +
    `COALESCE(NEW.${fence}::text, 'NULL') ` +
    `THEN RAISE EXCEPTION USING ` +
    `ERRCODE = '${fenceTriggerState}', DETAIL = OLD.${fence}::text, ` +
    `MESSAGE = 'fence ' || COALESCE(NEW.${fence}::text, 'NULL') || ' is stale: fence ' || ` +
    `OLD.${fence} || ' was seen'; END IF; RETURN NEW; END`;
  // Changes the delimiter until the body does not contain it (a column may have that name).
  let tag = "$holdfast$";
  while (body.includes(tag)) tag = tag.replace("$holdfast", "$holdfast_");
  return [
    `CREATE OR REPLACE FUNCTION ${functionName}() RETURNS trigger LANGUAGE plpgsql ` +
      `AS ${tag}${body}${tag}`,
    `DROP TRIGGER IF EXISTS ${quoted(name)} ON ${target}`,
    `CREATE TRIGGER ${quoted(name)} BEFORE UPDATE OF ${fence} ON ${target} ` +
      `FOR EACH ROW EXECUTE FUNCTION ${functionName}()`,
  ].join(";\n");
}

/**
 * Returns the name of the trigger and its function. Postgres cuts names at 63 bytes, so two long
 * column names could lead to the same function name. So a long name ends with a hash instead.
 */
function triggerName(column: string): string {
  const name = `holdfast_refuse_lower_${column}`;
  if (Buffer.byteLength(name) <= nameBytesMax) return name;
  return `holdfast_refuse_lower_${createHash("sha256").update(column).digest("hex").slice(0, 40)}`;
}

/**
 * Converts the trigger's error to FenceRejectedError and throws it; for use in a `catch`. Returns
 * for any other error.
 */
export function throwIfFenceRejected(
  error: unknown,
  fenced: Fenced | bigint,
  resource?: string,
): void {
  if (sqlState(error) !== fenceTriggerState || !isObject(error)) return;
  const detail = String(error["detail"]);
  const seen = /^\d{1,19}$/.test(detail) ? BigInt(detail) : undefined;
  throw rejection(fenced, {
    resource: subjectOf(fenced, resource, "a fenced row"),
    fence: fenceOf(fenced),
    seen,
    guard: "postgres",
  });
}
