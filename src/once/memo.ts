import { StoreError } from "../core/errors.ts";
import type { Fenced } from "../fencing/guard.ts";

/**
 * `begun`: work runs, or its process has died. `done`: the work has succeeded. `failed`: the work
 * threw an error, and may run again.
 */
export type MemoState = "begun" | "done" | "failed";

export interface MemoRecord {
  readonly state: MemoState;
  /** Fence of the lease that wrote the record. */
  readonly fence: bigint;
  readonly text: string;
}

/**
 * Place that keeps what `once` has done: a database that does not lose what it has confirmed. Made
 * by `postgresMemo`, `mysqlMemo`, `redisMemo` or `memoryMemo`, or of your own.
 */
export interface Memo {
  /** Returns the record of the key. Undefined if there is none, or if its time is over. */
  read(key: string): Promise<MemoRecord | undefined>;
  /**
   * Writes a record under the fence of the lease, for `keepMs`. Rejects with FenceRejectedError if
   * a greater fence has written. Keeps a record that is `done`, and returns it. Returns undefined
   * if the given record is stored. Check and write are one atomic step: with two, a holder that
   * comes too late could replace a result, or be replaced by a run that did not see it.
   */
  write(
    lease: Fenced,
    key: string,
    record: Pick<MemoRecord, "state" | "text">,
    keepMs: number,
  ): Promise<MemoRecord | undefined>;
}

/** Time for which a fence is kept after its record is over, for holders that wake up late. */
export const fenceKeptMs = 86_400_000;

/** Returns the state that a store has as text. Throws StoreError for any other text. */
export function parseState(text: unknown, where: string): MemoState {
  if (text === "begun" || text === "done" || text === "failed") return text;
  throw new StoreError(`${where} holds ${JSON.stringify(text)} where the state of a memo belongs`);
}
