/** `holdfast/schedule`: each tick of a schedule is run in one process of many. */

export {
  cronCoordinator,
  type CronCoordinator,
  type CronCoordinatorOptions,
} from "./cron-coordinator.ts";
export { schedule, type ScheduleOptions } from "./schedule.ts";
export type { Run, RunWork, Schedule } from "./schedule-call.ts";
export type {
  MissedReason,
  ScheduleEventName,
  ScheduleEvents,
  ScheduleListener,
} from "./schedule-events.ts";
export type { Ledger, Raised } from "./ledger.ts";
export { postgresLedger, postgresLedgerSql, type LedgerTableOptions } from "./postgres-ledger.ts";
export { redisLedger, type RedisLedgerOptions } from "./redis-ledger.ts";
export type { NextRun } from "./ticks.ts";
