import { InvalidOptionError } from "../core/errors.ts";
import { knownOptions } from "../core/options.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import type { GuardFenceOptions } from "./guard-table.ts";
import { isObject, type Fenced } from "./guard.ts";

// `setTimeout` is stored when the module loads, because fake timers of a test replace it later.
const { setTimeout: later } = globalThis;

/** Parts of `withGuard` that are the same for every database: options, time limits, repetitions. */

export interface WithGuardOptions extends GuardFenceOptions {
  /** Isolation level of the transaction. @default the server's default */
  readonly isolation?: "read committed" | "repeatable read" | "serializable";
  /**
   * Limit for each wait for a lock and for each pause between two statements. After this time the
   * server cancels the statement, or closes the connection, which rolls the transaction back.
   * @default the lease's remaining time at BEGIN; 30 s if only a fence was given
   */
  readonly timeout?: Duration;
  /** Limit for repetitions after a conflict with another transaction. @default 3 */
  readonly maxRetries?: number;
}

export interface GuardedTransaction {
  readonly isolation: WithGuardOptions["isolation"];
  readonly timeoutMs: number;
  readonly guard: GuardFenceOptions;
}

const plainTimeoutMs = 30_000;
const timeoutMsMax = 3_600_000;
const pauseMs = 20;
const optionNames = ["isolation", "timeout", "maxRetries", "table", "resource", "maxFenceAhead"];

/** Runs `attempt`. Repeats it after growing pauses if `isRepeatable` returns true for its error. */
export async function guardedTransaction<Result>(
  fenced: Fenced | bigint,
  options: WithGuardOptions,
  isRepeatable: (error: unknown) => boolean,
  attempt: (transaction: GuardedTransaction) => Promise<Result>,
): Promise<Result> {
  knownOptions("options", options, optionNames);
  const { isolation, timeout, maxRetries = 3, ...guard } = options;
  const levels: readonly unknown[] = ["read committed", "repeatable read", "serializable"];
  if (isolation !== undefined && !levels.includes(isolation)) {
    throw new InvalidOptionError("isolation", levels.join(", "), isolation);
  }
  if (!Number.isSafeInteger(maxRetries) || maxRetries < 0) {
    throw new InvalidOptionError("maxRetries", "a whole number of at least 0", maxRetries);
  }
  const bounds = { minMs: 1, maxMs: timeoutMsMax };
  const givenMs = timeout === undefined ? undefined : durationMs("timeout", timeout, bounds);
  for (let retry = 0; ; retry += 1) {
    throwIfLost(fenced);
    const timeoutMs = givenMs ?? remainingMsOf(fenced);
    try {
      return await attempt({ isolation, timeoutMs, guard });
    } catch (error) {
      if (retry >= maxRetries || !isRepeatable(error)) throw error;
    }
    await new Promise((resolve) => later(resolve, Math.random() * pauseMs * 2 ** retry));
  }
}

function throwIfLost(fenced: Fenced | bigint): void {
  const signal: unknown = isObject(fenced) ? fenced["signal"] : undefined;
  if (signal instanceof AbortSignal) signal.throwIfAborted();
}

function remainingMsOf(fenced: Fenced | bigint): number {
  const remaining: unknown = isObject(fenced) ? fenced["remainingMs"] : undefined;
  if (typeof remaining !== "function") return plainTimeoutMs;
  const ms: unknown = remaining.call(fenced);
  if (typeof ms !== "number" || Number.isNaN(ms)) return plainTimeoutMs;
  return Math.min(timeoutMsMax, Math.max(1, Math.ceil(ms)));
}
