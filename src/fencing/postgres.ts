/** Guards for Postgres: a fence column on the row, or a guard table beside it. */

export type { Fenced } from "./guard.ts";
export type { Admission, FenceStore } from "./fence-store.ts";
export type { LowerableFenceStore, LowerFenceOptions, LowerFenceResult } from "./lower-fence.ts";
export type { FenceLimitOptions, MaxFenceAhead } from "./plausible-fence.ts";
export type { PostgresDatabase, PostgresQuery } from "./postgres-query.ts";
export { expression, type SqlExpression } from "./sql-expression.ts";
export type {
  FencedDeleteResult,
  FencedRow,
  FencedRowDelete,
  FencedUpdate,
  FencedUpdateResult,
  FencedUpsert,
  FencedUpsertResult,
  LoweredRow,
  TableName,
} from "./sql-row.ts";
export { assertFenced, type PostgresOutcome } from "./postgres-assert.ts";
export { fencedDelete, fencedUpdate, fencedUpsert, lowerFence } from "./postgres-row.ts";
export type { WithGuardOptions } from "./guarded-transaction.ts";
export { withGuard, type PostgresTransaction } from "./postgres-transaction.ts";
export { guardFence, postgresFences } from "./postgres-guard-table.ts";
export type { GuardFenceOptions, GuardTableOptions } from "./guard-table.ts";
export {
  fenceColumnSql,
  fenceTriggerSql,
  fenceTriggerState,
  guardTableSql,
  throwIfFenceRejected,
} from "./postgres-migrations.ts";
