/** Guards for Postgres: a fence column on the row, or a guard table beside it. */

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { PostgresDatabase, PostgresQuery } from "./postgres-query.ts";
export type { FencedRow, FencedUpdate, FencedUpdateResult, TableName } from "./sql-row.ts";
export { assertFenced, fencedUpdate, type PostgresOutcome } from "./postgres-row.ts";
export { guardFence, postgresFences } from "./postgres-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export {
  fenceColumnSql,
  fenceTriggerSql,
  fenceTriggerState,
  guardTableSql,
  throwIfFenceRejected,
} from "./postgres-migrations.ts";
