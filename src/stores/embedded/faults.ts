import { type HoldfastError, isHoldfastError, StoreError } from "../../core/errors.ts";
import { damaged } from "./database-file.ts";
import { ReplacedError } from "./environment.ts";

export interface Fault {
  readonly error: HoldfastError;
  /** True if a later attempt may succeed. */
  readonly retryable: boolean;
}

const denied = new Set<unknown>(["EACCES", "EPERM", "EROFS", 1, 13, 30]);
/**
 * Codes of LMDB for a damaged file: MDB_INVALID, MDB_VERSION_MISMATCH, MDB_PANIC, MDB_CORRUPTED,
 * MDB_PAGE_NOTFOUND.
 */
const damagedCodes = new Set<unknown>([-30793, -30794, -30795, -30796, -30797]);
const full = -30792;

/** Returns the error to report if the file system, LMDB or the store threw `cause`. */
export function faultOf(cause: unknown, directory: string): Fault {
  // A vanished database is retryable, because the next call creates a new one.
  if (isHoldfastError(cause)) return { error: cause, retryable: cause instanceof ReplacedError };
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  const because = cause instanceof Error ? cause.message : String(cause);
  const storeError = (what: string): HoldfastError =>
    new StoreError(`${what} (${because})`, { cause });
  if (denied.has(code)) {
    const error = storeError(`no permission to keep locks in ${directory}`);
    return { error, retryable: false };
  }
  if (damagedCodes.has(code)) {
    return { error: damaged(directory, because, cause), retryable: false };
  }
  if (code === full) {
    return { error: storeError(`${directory} holds more locks than fit`), retryable: true };
  }
  return { error: storeError(`the locks in ${directory} could not be reached`), retryable: true };
}
