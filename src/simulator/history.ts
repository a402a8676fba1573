/**
 * Records of a run for the checkers. All times are on one common clock, so the same checkers judge
 * simulated runs and runs against real servers.
 */

/** An attempt that a quorum granted. */
export interface GrantRecord {
  readonly client: string;
  readonly resources: readonly string[];
  /** Time before the first command could be sent. */
  readonly startedMs: number;
  /** Time when the client had counted a quorum. */
  readonly completedMs: number;
  readonly fence: bigint | undefined;
}

/** Time span in which a client's lease reported `held` or `doubtful`, by the client's own clock. */
export interface TenureRecord {
  readonly client: string;
  readonly resource: string;
  readonly fence: bigint | undefined;
  readonly startedMs: number;
  readonly acquiredMs: number;
  /** Last time at which the lease is known to have reported that. */
  readonly trustedUntilMs: number;
}

/** A quorum confirmed that a grant still stands, by `extend` or `prove`. */
export interface ConfirmationRecord {
  readonly client: string;
  readonly resources: readonly string[];
  readonly fence: bigint | undefined;
  /** Completion time of the confirmed grant. */
  readonly grantedMs: number;
  /** Time before the first request could be sent. */
  readonly startedMs: number;
}

/** All rules of the checkers. Each has a planted violation in the tests. */
export const violationRules = [
  "stale-confirmation",
  "fence-order",
  "fence-unique",
  "mutex-model",
  "late-signal",
  "trust-beyond-validity",
  "too-few-votes",
  "vote-given-up",
  "false-loss",
  "false-release",
  "unreported-loss",
  "wrong-reason",
  "stale-write",
  "orphan-key",
  "late-promise",
  "no-progress",
  "unexpected-error",
  "unhandled-rejection",
] as const;

export interface Violation {
  readonly rule: (typeof violationRules)[number];
  readonly atMs: number;
  readonly text: string;
}

export interface History {
  readonly grants: readonly GrantRecord[];
  readonly tenures: readonly TenureRecord[];
  readonly confirmations?: readonly ConfirmationRecord[];
}
