/**
 * `holdfast/store`: what a store is written with. An application needs nothing of this.
 *
 * A store is an object that `createLocks` takes. It answers in outcomes (granted, held, failed),
 * never by exceptions for contention. The cases of `holdfast/testing` show whether it keeps what
 * the core relies on.
 */

export { isOwner, labelOf } from "./core/owners.ts";
export type { Emitter } from "./core/events.ts";
export type {
  AsyncContext,
  CancelTimer,
  Clock,
  Diagnostics,
  Instant,
  Random,
  Runtime,
  Stalls,
  SteadyClock,
  SteadyRuntime,
} from "./core/ports.ts";
export type {
  AcquireRequest,
  AttemptOutcome,
  BreakAnswer,
  Cancellation,
  ExtendOutcome,
  Grant,
  OnExtended,
  OpenStore,
  ProveOutcome,
  Store,
  StoreContext,
  Waiting,
} from "./core/store.ts";
export { durationMs, type DurationBounds } from "./core/time/durations.ts";
export type { Scheduler, Task } from "./core/time/scheduler.ts";
