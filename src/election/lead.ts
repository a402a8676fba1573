import { InvalidOptionError } from "../core/errors.ts";
import type { Locks } from "../core/locks.ts";
import { partsOf } from "../core/manager-parts.ts";
import { knownOptions, type LockOptions } from "../core/options.ts";
import { durationMs, type Duration } from "../core/time/durations.ts";
import { StandingCandidate, type Candidate } from "./candidate.ts";
import type { Term } from "./term.ts";

/** Pauses before a candidate stands again. */
export interface RestartOptions {
  /**
   * Pause after a term that the work or `resign()` ended, and after the first failure.
   * @default 1 s
   */
  readonly minDelay?: Duration;
  /** Longest pause. It doubles with each failure of the work in a row. @default 30 s */
  readonly maxDelay?: Duration;
}

export interface LeadOptions extends Pick<LockOptions, "ttl" | "renew" | "retry"> {
  /** Longest term. @default 30 days */
  readonly maxHold?: Duration;
  /** Text that `leaders` returns with the leader, such as its address. Up to 200 characters. */
  readonly label?: string;
  readonly restart?: RestartOptions;
  /** Stops the candidate when it aborts, as `stop()` does. */
  readonly signal?: AbortSignal;
}

export type LeadWork = (term: Term) => unknown;

const dayMs = 86_400_000;
const optionNames = ["ttl", "renew", "retry", "maxHold", "label", "restart", "signal"];

/**
 * Stands for election: waits for the lease on `name`, runs `work` while the lease is held and
 * renewed, and stands again when the work has settled. Returns at once.
 *
 * A candidate never runs `work` twice at a time, and releases the lease only after `work` has
 * settled. An old leader may still run when its successor begins, as with every lease: pass
 * `term.signal` to what the work waits for, and `term.fence` to the guards of what it writes.
 *
 * Throws InvalidOptionError for wrong arguments, and ClosedError if the manager is closed.
 */
export function lead(locks: Locks, name: string, work: LeadWork): Candidate;
export function lead(locks: Locks, name: string, options: LeadOptions, work: LeadWork): Candidate;
export function lead(
  locks: Locks,
  name: string,
  optionsOrWork: LeadOptions | LeadWork,
  maybeWork?: LeadWork,
): Candidate {
  const work = typeof optionsOrWork === "function" ? optionsOrWork : maybeWork;
  const options = typeof optionsOrWork === "function" ? {} : optionsOrWork;
  if (typeof name !== "string") throw new InvalidOptionError("name", "one name", name);
  if (typeof work !== "function") {
    throw new InvalidOptionError("work", "a function that takes the term", work);
  }
  knownOptions("options", options, optionNames);
  const { restart = {}, signal, ...given } = options;
  knownOptions("restart", restart, ["minDelay", "maxDelay"]);
  const minDelayMs = delayMs("restart.minDelay", restart.minDelay ?? 1_000, 1);
  const maxDelayDefault = Math.max(30_000, minDelayMs);
  const maxDelayMs = delayMs("restart.maxDelay", restart.maxDelay ?? maxDelayDefault, minDelayMs);
  const parts = partsOf(locks);
  const lock: LockOptions = { renew: true, maxHold: 30 * dayMs, ...given, wait: "forever" };
  parts.check(name, signal === undefined ? lock : { ...lock, signal });
  return new StandingCandidate({ locks, parts, name, lock, minDelayMs, maxDelayMs, signal, work });
}

function delayMs(option: string, value: Duration, minMs: number): number {
  return durationMs(option, value, { minMs, maxMs: dayMs });
}
