import type { ErrorCode } from "./error-code.ts";
import { nameOf, noNesting, type Holder } from "./report/holder.ts";
import { errorJson, messageOf } from "./report/loggable.ts";
import { list, shown } from "./report/quoted.ts";

export type { ErrorCode } from "./error-code.ts";
export type { Holder } from "./report/holder.ts";

/**
 * Errors of Holdfast. Each has a stable `code`. `isHoldfastError` also recognises errors of another
 * copy of the package: it checks a registered symbol, not the prototype.
 */

const brand: unique symbol = Symbol.for("holdfast.error") as never;

/** Resources that an error concerns, and the cause of the error. */
export interface ErrorDetails {
  readonly resources?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/** Base class of every error that Holdfast throws deliberately. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  /** Resources of the failed call. Empty if the call concerned no resource. */
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

/**
 * True if `value` is a Holdfast error, even from another copy of the package. If `code` is given,
 * the error must also have that code.
 */
export function isHoldfastError(value: unknown, code?: ErrorCode): value is HoldfastError {
  if (typeof value !== "object" || value === null || !(brand in value)) return false;
  return code === undefined || ("code" in value && value.code === code);
}

/** Others held the resource until `wait` ran out. This is contention, not a fault. */
export class AcquireTimeoutError extends HoldfastError {
  readonly attempts: number;
  readonly waitedMs: number;
  readonly holder: Holder | undefined;
  /**
   * Votes of the nodes in the last attempt of this call, or in the last attempt of the call in
   * front of it in the manager's queue. Empty if no attempt was made, and for stores without nodes.
   * Failed and blank nodes leave fewer nodes that can grant.
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
 * Result of one node in a round: `granted`, `held` (another owner has the lock), `unknown` (the
 * reply was lost or late: the command may have run), `failed` (the command did not run), or `blank`
 * (the node is not admitted to vote).
 */
export type VoteKind = "granted" | "held" | "unknown" | "failed" | "blank";

export interface Vote {
  readonly node: string;
  readonly vote: VoteKind;
  /** Time from the first byte of the round to this vote. */
  readonly ms: number;
  readonly cause?: unknown;
}

/**
 * Too many nodes failed, did not reply or may not vote, so a quorum was missing. This is a fault,
 * not contention.
 */
export class QuorumError extends HoldfastError {
  readonly votes: readonly Vote[];

  constructor(
    action: string,
    resources: readonly string[],
    votes: readonly Vote[],
    details: { quorum: number; cause?: unknown; hint?: string | undefined },
  ) {
    const what = resources.length === 0 ? "the locks" : list(resources);
    const needed = votes.length > 1 ? `needs ${details.quorum} of ${votes.length} nodes; ` : "";
    const why = votes.length === 0 ? "" : `: ${needed}${textOf(votes)}`;
    const hint = details.hint === undefined ? "" : `. ${details.hint}`;
    super("QUORUM", `could not ${action} ${what}${why}${hint}`, {
      resources,
      cause: details.cause,
    });
    this.votes = votes;
  }
}

/**
 * Why a lease ended before its `release()`: `expired` (its validity ran out), `taken` (a quorum of
 * nodes no longer has the lock), `unreachable` (renewals failed until its validity ran out),
 * `clock` (its validity is over by the wall clock: the machine was suspended or the clock was set),
 * `max-hold` (the lease reached `maxHold`, the limit for renewals).
 */
export type LossReason = "expired" | "taken" | "unreachable" | "clock" | "max-hold";

/**
 * The lease ended before its `release()`. This error is also the `reason` of the lease's `signal`.
 */
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

/** The lease was used after a call of its `release()`. */
export class LeaseReleasedError extends HoldfastError {
  constructor(resources: readonly string[]) {
    super("LEASE_RELEASED", `the lease on ${list(resources)} was already released`, { resources });
  }
}

/**
 * A guard rejected this fence because it had already stored a greater one. A later holder has
 * written, so this lease is stale.
 */
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
 * The store has a value under the resource's key that Holdfast did not write. Waiting does not
 * help: use another name or prefix. `break` with `foreign: true` deletes a plain value.
 */
export class ForeignHolderError extends HoldfastError {
  /** Type of the foreign value: `string` for a plain value, otherwise for example `hash`. */
  readonly type: string;

  constructor(type: string, message: string, details: ErrorDetails = {}) {
    super("FOREIGN_HOLDER", message, details);
    this.type = type;
  }
}

/** The store sent an unexpected reply, or refused for a reason that does not pass by waiting. */
export class StoreError extends HoldfastError {
  constructor(message: string, details: ErrorDetails = {}) {
    super("STORE", message, details);
  }
}

/**
 * Why a replicated server cannot grant a lease right now: `acks` (too few replicas confirmed the
 * write), `min-replicas` (the server requires more replicas than it has), `demoted` (the server has
 * become a replica), `replaced` (another server replies in its place, or the server has another
 * replication history).
 */
export type ReplicationFault = "acks" | "min-replicas" | "demoted" | "replaced";

/** Replicas or a failover prevent a grant. The fault may pass, so `acquire` sends more attempts. */
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

/** Too many calls of this manager already wait for the resource. The new call was refused. */
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

/** An option or argument is invalid. The call throws this error before it sends anything. */
export class InvalidOptionError extends HoldfastError {
  readonly option: string;

  /** `message` replaces the usual sentence. */
  constructor(option: string, expected: string, got: unknown, message?: string) {
    super(
      "INVALID_OPTION",
      message ?? `Expected \`${option}\` to be ${expected}, got ${shown(got)}`,
    );
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
