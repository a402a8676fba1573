import { lockManager } from "./core/lock-manager.ts";
import type { Locks } from "./core/locks.ts";
import type { LockDefaults } from "./core/options.ts";
import type { Runtime } from "./core/ports.ts";
import type { Store } from "./core/store.ts";
import { nodeRuntime } from "./runtime/node-runtime.ts";
import { processLabel } from "./runtime/process-label.ts";

export interface CreateLocksOptions extends LockDefaults {
  /**
   * Clock, timers and randomness, for tests. `holdfast/testing` has a runtime with a manual clock.
   */
  readonly runtime?: Runtime;
}

/**
 * Creates a lock manager over `store`. The options are defaults for every call. Throws
 * InvalidOptionError for an unknown or invalid option, before anything is sent.
 */
export function createLocks(store: Store, options: CreateLocksOptions = {}): Locks {
  const { runtime, ...defaults } = options;
  if (runtime !== undefined) return lockManager(runtime, store, defaults);
  const label = defaults.label === undefined ? processLabel() : defaults.label;
  return lockManager(nodeRuntime, store, { ...defaults, label });
}

export { renderFindings } from "./core/report/doctor.ts";
export type { Finding, FindingLevel } from "./core/report/doctor.ts";
export type { Duration } from "./core/time/durations.ts";
export {
  AcquireTimeoutError,
  ClosedError,
  FenceRejectedError,
  ForeignHolderError,
  HoldfastError,
  InvalidOptionError,
  isHoldfastError,
  LeaseLostError,
  LeaseReleasedError,
  QuorumError,
  ReplicationError,
  StoreError,
  TooManyWaitersError,
  UnsupportedError,
} from "./core/errors.ts";
export { FenceAheadError } from "./core/fence-ahead-error.ts";
export { SelfDeadlockError } from "./core/nesting.ts";
export type { BreakOptions, BreakOutcome } from "./core/break.ts";
export type {
  ErrorCode,
  ErrorDetails,
  Holder,
  LossReason,
  ReplicationFault,
  Vote,
  VoteKind,
} from "./core/errors.ts";
export type { LockEventName, LockEvents, LockListener } from "./core/events.ts";
export type { Lease, LeaseState } from "./core/lease/lease.ts";
export type { Locks, Resources, Work } from "./core/locks.ts";
export type { LockDefaults, LockOptions, RetryOptions } from "./core/options.ts";
export type { Runtime } from "./core/ports.ts";
export type {
  Inspection,
  NodeInspection,
  NodeStatus,
  ReleaseOutcome,
  Store,
  StoreCapabilities,
} from "./core/store.ts";
export type { StallReport } from "./core/time/stall-report.ts";
