/**
 * Records of a run for the checkers. All times are on one common clock, so the same checkers judge
 * simulated runs and runs against real servers.
 */

/** Attempt to acquire that a quorum granted. */
export interface GrantRecord {
  readonly client: string;
  readonly resources: readonly string[];
  /** Time before the first command of the attempt could be sent. */
  readonly startedMs: number;
  /** Time when the client had counted a quorum. */
  readonly completedMs: number;
  readonly fence: bigint | undefined;
}

/** Time span in which a client's lease reported `held` or `doubtful` to its user. */
export interface TenureRecord {
  readonly client: string;
  readonly resource: string;
  readonly fence: bigint | undefined;
  readonly startedMs: number;
  readonly acquiredMs: number;
  /** Last known time at which the lease reported `held` or `doubtful`. */
  readonly trustedUntilMs: number;
}

/** Confirmation by a quorum, through `extend` or `prove`, that a client still holds a lease. */
export interface ConfirmationRecord {
  readonly client: string;
  readonly resources: readonly string[];
  readonly fence: bigint | undefined;
  /** Time when the client was granted the lease that is confirmed. */
  readonly grantedMs: number;
  /** Time before the first request of the `extend` or `prove` could be sent. */
  readonly startedMs: number;
}

/** Names of all rules of the checkers. The tests contain a deliberate violation of each rule. */
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
  "kept-grant",
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
