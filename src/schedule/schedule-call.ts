import type { Lease } from "../core/lease/lease.ts";
import type { Locks } from "../core/locks.ts";
import type { ManagerParts } from "../core/manager-parts.ts";
import type { LockOptions } from "../core/options.ts";
import type { Ledger } from "./ledger.ts";
import type { Policy } from "./plan.ts";
import type { ScheduleEventName, ScheduleListener } from "./schedule-events.ts";
import type { Ticks } from "./ticks.ts";

/** One run of the work of a schedule. */
export interface Run {
  /** Which tick this is: the same in every process. */
  readonly tick: Date;
  /** 1 for the first attempt of this tick. */
  readonly attempt: number;
  readonly lease: Lease;
  /** Signal of the lease: aborts if the lease is lost. */
  readonly signal: AbortSignal;
}

export type RunWork = (run: Run) => unknown;

/** A schedule in this process. Other processes have their own, with the same name. */
export interface Schedule extends AsyncDisposable {
  readonly name: string;
  /** Next tick that this process looks at. Undefined if the schedule has stopped. */
  readonly next: Date | undefined;
  /**
   * Looks at no further tick. Resolves when a run that goes on in this process has ended. A second
   * call returns the same promise.
   */
  stop(): Promise<void>;
  /** Adds a listener for one kind of event. Returns a function that removes it. */
  on<Name extends ScheduleEventName>(name: Name, listener: ScheduleListener<Name>): () => void;
}

export interface ScheduleCall {
  readonly locks: Locks;
  readonly parts: ManagerParts;
  readonly name: string;
  readonly lock: LockOptions;
  readonly ticks: Ticks;
  readonly ledger: Ledger;
  readonly policy: Policy & {
    readonly overlap: "skip" | "after";
    readonly immediately: boolean;
  };
  readonly signal: AbortSignal | undefined;
  readonly work: RunWork;
}
