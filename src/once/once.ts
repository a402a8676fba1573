import { createHash } from "node:crypto";
import { InvalidOptionError, LeaseLostError, UnsupportedError } from "../core/errors.ts";
import type { Lease } from "../core/lease/lease.ts";
import type { Locks, Work } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import { knownOptions, type LockOptions } from "../core/options.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { keptMsMax } from "../fencing/redis-fences.ts";
import type { Memo } from "./memo.ts";
import { OnceRun } from "./once-run.ts";

/** What to do if the work began earlier and did not end, and no lease is held. */
export type CrashPolicy = "run-again" | "refuse";

export interface OnceOptions<Result = unknown> extends LockOptions {
  /** Where results are kept. */
  readonly memo: Memo;
  /** Time for which a result is kept. After it the work may run again. @default "24h" */
  readonly keep?: Duration;
  /**
   * Text, bytes or JSON value that belongs to the key, such as the body of a request. A later call
   * with another fingerprint rejects with KeyReusedError. Only a hash of it is stored. Of an object
   * the order of the fields counts. @default not compared
   */
  readonly fingerprint?: unknown;
  /**
   * `"run-again"` is for work that may run twice, or that finds out by itself what it has done.
   * `"refuse"` rejects with OutcomeUnknownError.
   * @default "run-again"
   */
  readonly crash?: CrashPolicy;
  /** Turns a result into the text that is kept, up to 64 KB. @default JSON.stringify */
  readonly serialise?: (result: Result) => string;
  /** Turns that text into a result. @default JSON.parse */
  readonly parse?: (text: string) => Result;
}

const ownNames = ["memo", "keep", "fingerprint", "crash", "serialise", "parse"];
const lockNames = ["ttl", "wait", "renew", "maxHold", "retry", "signal", "label"];
const keepDefaultMs = 86_400_000;
const keepMinMs = 1_000;

/**
 * Runs `work` under a lease on `key`, unless an earlier call has done so; returns the result of the
 * work, or the one that was kept. A call that comes while the work runs waits up to `wait`, then
 * rejects with AcquireTimeoutError.
 *
 * After a success the work does not run again while the result is kept. An error is not kept: the
 * next call runs the work. Every caller receives the result as it was kept, so also the first one
 * gets what JSON makes of it.
 *
 * The work may run twice if its process dies in it, or goes on after its lease is lost: see
 * `crash`, and pass the fence of the lease to what the work writes. Rejects with LeaseLostError if
 * the result could not be kept because a later holder has begun.
 */
export async function once<Result>(
  locks: Locks,
  key: string,
  options: OnceOptions<Result>,
  work: Work<Result>,
): Promise<Result> {
  const parts = partsOf(locks);
  const { run, lock } = resolved(locks, key, options);
  parts.check(key, lock);
  if (typeof work !== "function") {
    throw new InvalidOptionError("work", "a function that takes the lease", work);
  }
  const found = await run.kept();
  if (found !== undefined) return found.result;
  try {
    return await locks.using(key, lock, async (lease: Lease) => await run.under(lease, work));
  } catch (error) {
    // The result was stored before another holder began: the loss of the lease changes nothing.
    if (error instanceof LeaseLostError && run.stored !== undefined) return run.stored.result;
    throw error;
  }
}

function resolved<Result>(
  locks: Locks,
  key: string,
  options: OnceOptions<Result>,
): { readonly run: OnceRun<Result>; readonly lock: LockOptions } {
  if (typeof key !== "string") throw new InvalidOptionError("key", "one name", key);
  knownOptions("options", options, [...ownNames, ...lockNames]);
  const { memo, keep, fingerprint, crash = "run-again", serialise, parse, ...lock } = options;
  if (typeof memo?.read !== "function" || typeof memo.write !== "function") {
    const kinds = "postgresMemo(pool), mysqlMemo(pool), redisMemo(client) or memoryMemo()";
    throw new InvalidOptionError("memo", `a memo: ${kinds}`, memo);
  }
  if (crash !== "run-again" && crash !== "refuse") {
    throw new InvalidOptionError("crash", '"run-again" or "refuse"', crash);
  }
  const bounds = { minMs: keepMinMs, maxMs: keptMsMax };
  const keepMs = durationMs("keep", keep ?? keepDefaultMs, bounds);
  for (const [name, given] of Object.entries({ serialise, parse })) {
    if (given !== undefined && typeof given !== "function") {
      throw new InvalidOptionError(name, "a function", given);
    }
  }
  if (!locks.capabilities.fencing) {
    throw new UnsupportedError("once needs fences, and this store grants none", {
      resources: [key],
    });
  }
  const { runtime, events } = partsOf(locks);
  const print = fingerprint === undefined ? undefined : hashOf(fingerprint);
  const policy = { print, crash, keepMs };
  const codec = {
    serialise: serialise ?? ((result: Result) => JSON.stringify(result)),
    parse: parse ?? ((text: string) => JSON.parse(text) as Result),
  };
  return { run: new OnceRun({ key, memo, policy, codec, clock: runtime.clock, events }), lock };
}

function hashOf(fingerprint: unknown): string {
  const isBytes = fingerprint instanceof Uint8Array;
  let data: unknown = fingerprint;
  if (!isBytes && typeof fingerprint !== "string") {
    try {
      data = JSON.stringify(fingerprint);
    } catch {
      data = undefined;
    }
  }
  if (typeof data !== "string" && !isBytes) {
    throw new InvalidOptionError("fingerprint", "a text, bytes or a JSON value", fingerprint);
  }
  const kind = isBytes ? "bytes" : typeof fingerprint === "string" ? "text" : "json";
  return createHash("sha256")
    .update(kind)
    .update(data as string | Uint8Array)
    .digest("base64url");
}
