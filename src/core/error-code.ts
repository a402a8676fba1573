/** Code of an error: the same in every version, for programs that read errors. */
export type ErrorCode =
  | "ACQUIRE_TIMEOUT"
  | "QUORUM"
  | "LEASE_LOST"
  | "LEASE_RELEASED"
  | "FENCE_REJECTED"
  | "FENCE_AHEAD"
  | "FOREIGN_HOLDER"
  | "SELF_DEADLOCK"
  | "STORE"
  | "REPLICATION"
  | "UNSUPPORTED"
  | "TERM_ENDED"
  | "KEY_REUSED"
  | "OUTCOME_UNKNOWN"
  | "TOO_MANY_WAITERS"
  | "CLOSED"
  | "INVALID_OPTION";
