import { isHoldfastError, type HoldfastError } from "../core/errors.ts";
import type { ExitName } from "./exit-codes.ts";

/** Ends a command with one line on stderr and an exit code. */
export class Failure extends Error {
  override readonly name = "Failure";
  readonly exit: ExitName;
  /** Exit code that replaces the usual code of `exit`. */
  readonly code: number | undefined;
  /** True if the failure is not printed. */
  readonly silent: boolean;

  constructor(
    exit: ExitName,
    message: string,
    cause?: unknown,
    {
      code,
      silent = false,
    }: { readonly code?: number | undefined; readonly silent?: boolean } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.exit = exit;
    this.code = code;
    this.silent = silent;
  }
}

/** Thrown if a signal ended holdfast before it had begun any work. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
    this.signal = signal;
  }
}

const redisRefusals = ["WRONGPASS", "NOAUTH", "NOPERM", "ERR invalid password", "ERR AUTH"];
const beginnings = [
  "no permission to keep locks",
  "Postgres refused the user",
  "the user lacks a right",
];
const deniedPattern = new RegExp(
  `^(${beginnings.join("|")})|\\b(${redisRefusals.join("|")}|ERR Client sent AUTH)\\b`,
);

/** True if the text reports refused credentials or missing rights. A retry does not help then. */
export function isDenied(text: string): boolean {
  return deniedPattern.test(text);
}

/** Converts an error to a Failure. Returns undefined for an unexpected error (a bug). */
export function failureOf(error: unknown): Failure | undefined {
  if (error instanceof Failure) return error;
  if (!isHoldfastError(error)) return undefined;
  return new Failure(exitOf(error), error.message, error);
}

function exitOf(error: HoldfastError): ExitName {
  switch (error.code) {
    case "ACQUIRE_TIMEOUT":
    case "FOREIGN_HOLDER":
    case "TOO_MANY_WAITERS":
      return "held";
    case "INVALID_OPTION":
    case "FENCE_AHEAD":
      return "misuse";
    case "UNSUPPORTED":
      return "unsupported";
    case "FENCE_REJECTED":
      return "stale";
    case "LEASE_LOST":
      return "lost";
    case "QUORUM":
    case "REPLICATION":
    case "STORE":
      return isDenied(error.message) ? "denied" : "unavailable";
    case "LEASE_RELEASED":
    case "SELF_DEADLOCK":
    case "TERM_ENDED":
    case "KEY_REUSED":
    case "OUTCOME_UNKNOWN":
    case "CLOSED":
      return "internal";
    default:
      return error.code satisfies never;
  }
}
