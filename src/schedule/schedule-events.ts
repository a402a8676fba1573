/**
 * Why a tick was not run, or not to its end: `crashed` (its process died in it, or lost its lease),
 * `late` (more than `grace` has passed), `passed-over` (a later tick was due as well), `too-old`
 * (more than `within` has passed; the event has the latest of these ticks).
 */
export type MissedReason = "crashed" | "late" | "passed-over" | "too-old";

interface AboutTick {
  readonly name: string;
  readonly tick: Date;
}

interface AboutRun extends AboutTick {
  readonly attempt: number;
  readonly fence: bigint;
}

/** Events of a schedule. Also published on the diagnostics channel `holdfast:<name>`. */
export interface ScheduleEvents {
  /** A run begins in this process. */
  "tick-begun": AboutRun;
  /** The work of a run has ended without an error. */
  "tick-done": AboutRun & { readonly elapsedMs: number };
  /** The work of a run has failed. `retryInMs` is undefined if the tick is not run again. */
  "tick-failed": AboutRun & {
    readonly elapsedMs: number;
    readonly error: unknown;
    readonly retryInMs: number | undefined;
  };
  /** A tick was not run, or its run did not finish, and it will not be tried again. */
  "tick-missed": AboutTick & { readonly reason: MissedReason };
  /** A tick came while the run of an earlier one went on, and `overlap` is `skip`. */
  "tick-skipped": AboutTick;
  /** A look at a tick failed: the store or the ledger did not reply, for example. */
  "schedule-failed": {
    readonly name: string;
    readonly error: unknown;
    readonly retryInMs: number | undefined;
  };
}

export type ScheduleEventName = keyof ScheduleEvents;
export type ScheduleListener<Name extends ScheduleEventName> = (
  event: ScheduleEvents[Name],
) => void;
