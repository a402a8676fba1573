import { messageOf } from "../../core/report/loggable.ts";
import { type HoldfastError, isHoldfastError, StoreError } from "../../core/errors.ts";
import { sqlState } from "../../fencing/driver-errors.ts";
import { isObject } from "../../fencing/guard.ts";

/**
 * What is wrong: `unreachable` (no connection, or no reply in time), `credentials` (the server
 * refused the user, the password or the database), `schema` (it is missing or too old), `rights`
 * (the user lacks one), `read-only` (the server is a replica, or read-only), `refused` (any other
 * error of the server).
 */
export type PostgresFault =
  | "unreachable"
  | "credentials"
  | "schema"
  | "rights"
  | "read-only"
  | "refused";

/** A fault of Postgres. Its message says what to do; `cause` is the error of the driver. */
export class PostgresError extends StoreError {
  readonly fault: PostgresFault;

  constructor(
    fault: PostgresFault,
    message: string,
    details: ConstructorParameters<typeof StoreError>[1],
  ) {
    super(message, details);
    this.fault = fault;
  }
}

/** A failed statement. */
export interface Failure {
  readonly error: HoldfastError;
  /** True if a later attempt may succeed. */
  readonly retryable: boolean;
  /** True if the statement certainly changed nothing. False if its reply was lost. */
  readonly certain: boolean;
  /** True if another transaction was in the way: the statement can be sent again at once. */
  readonly conflict: boolean;
}

/** Error of a statement that got no reply within the time limit. */
export class NoReplyError extends Error {
  constructor(timeoutMs: number) {
    super(`no reply within ${timeoutMs} ms`);
    this.name = "NoReplyError";
  }
}

/** Codes of Node.js for a connection that was never made. */
const neverConnected = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "EAI_AGAIN"]);
/** Codes after which the statement may have been committed: the connection broke, or a shutdown. */
const uncertain = /^(08|57P01|57P02)/;
const sqlStateShape = /^[0-9A-Z]{5}$/;

/** Returns what a statement's error means. `schema` is the name for the message. */
export function failureOf(cause: unknown, schema: string): Failure {
  if (isHoldfastError(cause)) {
    return { error: cause, retryable: false, certain: true, conflict: false };
  }
  const code = sqlState(cause);
  const isState = code !== undefined && sqlStateShape.test(code);
  const because = isObject(cause) && cause["message"] === "" ? (code ?? "") : messageOf(cause);
  const { fault, message, retryable } = meaningOf(isState ? code : "", schema, because);
  const certain = isState ? !uncertain.test(code) : neverConnected.has(code ?? "");
  const conflict = code === "40001" || code === "40P01" || code === "55P03";
  return { error: new PostgresError(fault, message, { cause }), retryable, certain, conflict };
}

interface Meaning {
  readonly fault: PostgresFault;
  readonly message: string;
  readonly retryable: boolean;
}

function meaningOf(state: string, schema: string, because: string): Meaning {
  if (/^(28|3D000)/.test(state)) {
    const message = `Postgres refused the user: ${because}. Check user, password and database`;
    return { fault: "credentials", message, retryable: false };
  }
  if (/^(3F000|42883|42P01)$/.test(state)) {
    const message =
      `the schema "${schema}" of the locks is missing or too old (${because}). Run ` +
      `migrate(pool), or the SQL of migrationSql(), from holdfast/postgres once`;
    return { fault: "schema", message, retryable: false };
  }
  if (state === "42501") {
    const message =
      `the user lacks a right on the schema "${schema}" of the locks: ${because}. ` +
      `Run the SQL of grantSql(user) from holdfast/postgres as the schema's owner`;
    return { fault: "rights", message, retryable: false };
  }
  // 55000: functions that need a primary, during recovery.
  if (state === "25006" || (state === "55000" && because.includes("recovery"))) {
    const message = `this Postgres server is a replica or read-only: ${because}`;
    return { fault: "read-only", message, retryable: true };
  }
  if (state === "" || /^(08|57P|53)/.test(state)) {
    return {
      fault: "unreachable",
      message: `Postgres is not reachable: ${because}`,
      retryable: true,
    };
  }
  const message = `Postgres refused a statement (${state}): ${because}`;
  return { fault: "refused", message, retryable: /^(40|55|57|25P0)/.test(state) };
}
