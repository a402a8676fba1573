import { nameOf, noNesting, type Holder } from "./report/holder.ts";
import { errorJson, messageOf } from "./report/loggable.ts";
import { list, shown } from "./report/quoted.ts";

export type { Holder } from "./report/holder.ts";

/**
 * One tree of errors. Each has a stable `code`; `isHoldfastError` works across duplicate copies of
 * the package, because it looks at a registered symbol and not at the prototype.
 */

const brand: unique symbol = Symbol.for("holdfast.error") as never;

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
  | "TOO_MANY_WAITERS"
  | "CLOSED"
  | "INVALID_OPTION";

/** What an error is about, and what caused it. */
export interface ErrorDetails {
  readonly resources?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/** Base class of every error that Holdfast throws deliberately. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  /** Resources of the failed call; empty if it had none. */
  readonly resources: readonly string[];

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.resources = details.resources ?? [];
    Object.defineProperty(this, brand, { value: true });
  }

  /** Returns the error for logs: fences and causes as text, without `result` and `stack`. */
  toJSON(): Record<string, unknown> {
    return errorJson(this);
  }
}

/** True for a Holdfast error (with this code, if given), also of another copy of the package. */
export function isHoldfastError(value: unknown, code?: ErrorCode): value is HoldfastError {
  if (typeof value !== "object" || value === null || !(brand in value)) return false;
  return code === undefined || ("code" in value && value.code === code);
}

/** The resource was held by others until `wait` ran out. Nothing is broken. */
export class AcquireTimeoutError extends HoldfastError {
  readonly attempts: number;
  readonly waitedMs: number;
  readonly holder: Holder | undefined;
  /**
   * Votes of the nodes in the last attempt of this call, or of the call that it waited behind.
   * Empty if there was none, and for stores without nodes. Failed and quarantined nodes leave fewer
   * votes to win.
   */
  readonly votes: readonly Vote[];

  constructor(
    resources: readonly string[],
    details: {
      attempts: number;
      waitedMs: number;
      holder?: Holder | undefined;
      votes?: readonly Vote[] | undefined;
    },
  ) {
    const { holder } = details;
    super(
      "ACQUIRE_TIMEOUT",
      `${list(resources)} was held by ${nameOf(holder)} until the wait of ` +
        `${Math.round(details.waitedMs)} ms ended (${details.attempts} attempts)` +
        (holder?.neverExpires === true ? "; it has no expiry: it will not end by itself" : "") +
        (holder?.self === true ? `; ${noNesting}` : "") +
        missingVotes(details.votes),
      { resources },
    );
    this.attempts = details.attempts;
    this.waitedMs = details.waitedMs;
    this.holder = holder;
    this.votes = details.votes ?? [];
  }
}

/**
 * Result of one node in a round: `granted`, `held` by another, `unknown` (the reply was lost or
 * late: the command may have run), `failed` (it did not run), or `blank` (not admitted to vote).
 */
export type VoteKind = "granted" | "held" | "unknown" | "failed" | "blank";

export interface Vote {
  readonly node: string;
  readonly vote: VoteKind;
  /** Time from the first byte of the round to this vote. */
  readonly ms: number;
  readonly cause?: unknown;
}

/** Too many nodes failed, did not reply or may not vote. This is a fault, not contention. */
export class QuorumError extends HoldfastError {
  readonly votes: readonly Vote[];

  constructor(
    action: string,
    resources: readonly string[],
    votes: readonly Vote[],
    details: { quorum: number; cause?: unknown; hint?: string | undefined },
  ) {
    super(
      "QUORUM",
      `could not ${action} ${list(resources)}: needs ${details.quorum} of ${votes.length} nodes; ` +
        textOf(votes) +
        (details.hint === undefined ? "" : `. ${details.hint}`),
      { resources, cause: details.cause },
    );
    this.votes = votes;
  }
}

/**
 * Why a lease ended without our release: `expired` (its validity ran out), `taken` (a quorum no
 * longer has it), `unreachable` (it could not be renewed in time), `clock` (it is over by the wall
 * clock: a suspend or a clock step), `max-hold` (the limit for renewals was reached).
 */
export type LossReason = "expired" | "taken" | "unreachable" | "clock" | "max-hold";

/** The lease ended without our release. Also the `reason` of the lease's `signal`. */
export class LeaseLostError extends HoldfastError {
  readonly reason: LossReason;
  /** Value that the work returned, if it finished after its lease was lost. */
  readonly result: unknown;

  constructor(
    resources: readonly string[],
    reason: LossReason,
    details: { cause?: unknown; result?: unknown } = {},
  ) {
    super("LEASE_LOST", `the lease on ${list(resources)} was lost: ${explainLoss(reason)}`, {
      resources,
      cause: details.cause,
    });
    this.reason = reason;
    this.result = details.result;
  }
}

/** The lease was used after its own `release()`. */
export class LeaseReleasedError extends HoldfastError {
  constructor(resources: readonly string[]) {
    super("LEASE_RELEASED", `the lease on ${list(resources)} was already released`, { resources });
  }
}

/** A guard saw a greater fence: a later holder has written, this one is stale. */
export class FenceRejectedError extends HoldfastError {
  readonly fence: bigint;
  readonly seen: bigint | undefined;

  constructor(resource: string, fence: bigint, seen: bigint | undefined) {
    super(
      "FENCE_REJECTED",
      `fence ${fence} for "${resource}" is stale: ` +
        (seen === undefined ? "a greater fence was seen" : `fence ${seen} was seen`),
      { resources: [resource] },
    );
    this.fence = fence;
    this.seen = seen;
  }
}

/**
 * The store has something under the resource's key that Holdfast did not write. Waiting does not
 * help: use another name or prefix. A plain value can be broken with `foreign: true`.
 */
export class ForeignHolderError extends HoldfastError {
  /** Type of what the store has there: `string` for a plain value, otherwise for example `hash`. */
  readonly type: string;

  constructor(type: string, message: string, details: ErrorDetails = {}) {
    super("FOREIGN_HOLDER", message, details);
    this.type = type;
  }
}

/** The store's reply was unexpected, or it refused for a reason that waiting does not cure. */
export class StoreError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super("STORE", message, details);
  }
}

/**
 * Why a replicated server cannot grant a lease right now: `acks` (too few replicas confirmed the
 * write), `min-replicas` (the server requires more replicas than it has), `demoted` (it has become
 * a replica), `replaced` (another server, or one with another history, replies in its place).
 */
export type ReplicationFault = "acks" | "min-replicas" | "demoted" | "replaced";

/** Replicas or a failover prevent a grant. This may pass, so `acquire` keeps trying. */
export class ReplicationError extends HoldfastError {
  readonly fault: ReplicationFault;

  constructor(fault: ReplicationFault, message: string, details: ErrorDetails = {}) {
    super("REPLICATION", message, details);
    this.fault = fault;
  }
}

/** The store cannot promise what the call needs. */
export class UnsupportedError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super("UNSUPPORTED", message, details);
  }
}

/** Too many calls of this manager already wait for the resource. This one was refused. */
export class TooManyWaitersError extends HoldfastError {
  constructor(resources: readonly string[], waiters: number) {
    const what = `${waiters} calls wait for ${list(resources)} already`;
    super("TOO_MANY_WAITERS", `${what}: work comes in faster than it is done`, { resources });
  }
}

/** The manager was closed before or during the call. */
export class ClosedError extends HoldfastError {
  constructor(resources: readonly string[] = []) {
    super("CLOSED", "the lock manager is closed", { resources });
  }
}

/** An option or argument is invalid. Thrown before anything is sent. */
export class InvalidOptionError extends HoldfastError {
  readonly option: string;

  constructor(option: string, expected: string, got: unknown) {
    super("INVALID_OPTION", `Expected \`${option}\` to be ${expected}, got ${shown(got)}`);
    this.option = option;
  }
}

function textOf(votes: readonly Vote[]): string {
  const texts = votes.map(({ node, vote, cause }) => {
    return `${node}: ${vote}${cause === undefined ? "" : ` (${messageOf(cause)})`}`;
  });
  return texts.join("; ");
}

/** Returns the votes as text if a node failed or may not vote: that may be why the wait failed. */
function missingVotes(votes: readonly Vote[] = []): string {
  const isMissing = votes.some(({ vote }) => vote === "failed" || vote === "blank");
  return isMissing ? `. Nodes at the last attempt: ${textOf(votes)}` : "";
}

function explainLoss(reason: LossReason): string {
  switch (reason) {
    case "expired":
      return "its validity ran out";
    case "taken":
      return "the store no longer has it for this owner";
    case "unreachable":
      return "it could not be renewed before its validity ran out";
    case "clock":
      return "the wall clock says its validity is over (a suspended machine or a clock step)";
    case "max-hold":
      return "it was held for maxHold, the bound on renewal";
    default:
      return reason satisfies never;
  }
}
