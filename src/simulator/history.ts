/**
 * What a run leaves behind for the checkers: plain records in one common time, so that a run
 * against real servers can be judged by the very same rules as a simulated one.
 */

/** An attempt that a quorum granted. */
export interface GrantRecord {
  readonly client: string;
  readonly resources: readonly string[];
  /** Before its first command could be sent. */
  readonly startedMs: number;
  /** When the client counted its quorum. */
  readonly completedMs: number;
  readonly fence: bigint | undefined;
}

/** A stretch in which a client, asked by its own clock, said that it held the resource. */
export interface TenureRecord {
  readonly client: string;
  readonly resource: string;
  readonly fence: bigint | undefined;
  readonly startedMs: number;
  readonly acquiredMs: number;
  /** The last moment at which it is known to have said so. */
  readonly trustedUntilMs: number;
}

/** A quorum confirmed that a grant still stands, extending it or not. */
export interface ConfirmationRecord {
  readonly client: string;
  readonly resources: readonly string[];
  readonly fence: bigint | undefined;
  /** Of the grant that is confirmed. */
  readonly grantedMs: number;
  /** Before the first question could be sent. */
  readonly startedMs: number;
}

export interface Violation {
  readonly rule:
    | "stale-confirmation"
    | "fence-order"
    | "fence-unique"
    | "mutex-model"
    | "late-signal"
    | "trust-beyond-validity"
    | "too-few-votes"
    | "vote-given-up"
    | "false-loss"
    | "stale-write"
    | "orphan-key"
    | "late-promise"
    | "no-progress"
    | "unexpected-error"
    | "unhandled-rejection";
  readonly atMs: number;
  readonly text: string;
}

export interface History {
  readonly grants: readonly GrantRecord[];
  readonly tenures: readonly TenureRecord[];
  readonly confirmations?: readonly ConfirmationRecord[];
}
