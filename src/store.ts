/**
 * `holdfast/store`: types and functions for writing a store. Applications do not need this module.
 *
 * A store is an object to pass to `createLocks`. Its methods return outcomes (granted, held,
 * failed) and never throw for contention. The conformance cases of `holdfast/testing` check that a
 * store does what the core relies on.
 */

export { earlyMsMax, marksMax, replacesMark, type Mark, type RaiseOutcome } from "./core/mark.ts";
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
