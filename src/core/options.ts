import { durationMs, msOf, type Duration } from "./time/durations.ts";
import { InvalidOptionError } from "./errors.ts";
import { knownOptions } from "./known-options.ts";

export { knownOptions } from "./known-options.ts";

/** Limits for the random pauses between attempts (decorrelated jitter). */
export interface RetryOptions {
  /**
   * Shortest pause.
   * @default 10 ms: about ten round trips in one data centre.
   */
  readonly minDelay?: Duration;
  /**
   * Longest pause.
   * @default 200 ms: short enough to notice a freed resource soon, long enough not to flood the
   * nodes.
   */
  readonly maxDelay?: Duration;
}

export interface LockOptions {
  /**
   * Time for which the store keeps the lock, unless it is renewed.
   * @default "10s": longer than any ordinary stall, short enough to wait out after a crash.
   */
  readonly ttl?: Duration;
  /**
   * Longest wait for a held resource: 0 makes one attempt, `"forever"` waits until `signal` aborts
   * or `close()` is called.
   * @default "10s", or until new nodes of a quorum may vote
   */
  readonly wait?: Duration | "forever";
  /**
   * Renews the lease in the background while it is held. `using` renews by default. `acquire` does
   * not, so that a lease that is never released does not last until `maxHold`. `true` renews after
   * a third of the TTL, which leaves time for two failures. A duration is the time between
   * renewals. It must leave an eighth of the TTL for a second try.
   */
  readonly renew?: boolean | Duration;
  /**
   * Longest time for which renewals keep a lease.
   * @default "1h": a worker that hangs must not hold its resource for ever.
   */
  readonly maxHold?: Duration;
  readonly retry?: RetryOptions;
  /** Signal that ends the wait. It does not end a lease that was already granted. */
  readonly signal?: AbortSignal;
  /**
   * Text that other clients receive with the holder of a held resource. Up to 200 characters; an
   * empty text is no label.
   * @default "host:pid", or none if a `runtime` is given
   */
  readonly label?: string;
}

/** Defaults for every call of a manager, given to `createLocks`. */
export type LockDefaults = Omit<LockOptions, "signal">;

export interface ResolvedOptions {
  readonly ttlMs: number;
  /** Longest wait for a held resource. Infinity for `"forever"`. */
  readonly waitMs: number;
  /** True if the user gave no `wait`, to the call or to the manager. */
  readonly isDefaultWait: boolean;
  /**
   * True to renew after a third of the TTL. A number is the time between renewals in ms. Undefined
   * for the default of the method.
   */
  readonly renew: boolean | number | undefined;
  readonly maxHoldMs: number;
  readonly retryMinMs: number;
  readonly retryMaxMs: number;
  readonly label: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Least TTL. Clock drift and the time of the requests would leave almost nothing of a shorter one.
 */
export const ttlMinMs = 10;
/** Longest pause after a failed renewal, as a share of the TTL. */
const retryShare = 1 / 8;
const dayMs = 86_400_000;
/** Limit for the length of a label. */
export const labelLengthMax = 200;

export const builtInDefaults: ResolvedOptions = {
  ttlMs: 10_000,
  waitMs: 10_000,
  isDefaultWait: true,
  renew: undefined,
  maxHoldMs: 3_600_000,
  retryMinMs: 10,
  retryMaxMs: 200,
  label: undefined,
  signal: undefined,
};

const lockOptionNames = ["ttl", "wait", "renew", "maxHold", "retry", "signal", "label"];

/** Limits of a store for the options of a lock. */
export interface StoreBounds {
  readonly maxTtlMs: number;
  /** Returns how long a lease of this TTL is valid. Left out if that is the whole TTL. */
  validityMs?(ttlMs: number): number;
}

/** Checks the given options and takes the rest from `defaults`. Throws InvalidOptionError. */
export function resolveOptions(
  given: LockOptions | undefined,
  defaults: ResolvedOptions,
  bounds: StoreBounds,
): ResolvedOptions {
  const { maxTtlMs } = bounds;
  if (given === undefined) return withinTtl(defaults, maxTtlMs);
  knownOptions("options", given, lockOptionNames);
  const { ttl, wait, renew, maxHold, retry, signal, label } = given;
  if (retry !== undefined) knownOptions("retry", retry, ["minDelay", "maxDelay"]);
  const retryMinMs = orDefault("retry.minDelay", retry?.minDelay, defaults.retryMinMs, 1, dayMs);
  const retryMaxMs = orDefault(
    "retry.maxDelay",
    retry?.maxDelay,
    Math.max(defaults.retryMaxMs, retryMinMs),
    retryMinMs,
    dayMs,
  );
  const ttlMs = ttl === undefined ? Math.min(defaults.ttlMs, maxTtlMs) : checkedTtl(ttl, maxTtlMs);
  return {
    ttlMs,
    waitMs: wait === "forever" ? Infinity : orDefault("wait", wait, defaults.waitMs, 0, 7 * dayMs),
    isDefaultWait: wait === undefined && defaults.isDefaultWait,
    renew: checkedRenew(renew === undefined ? defaults.renew : renew, ttlMs, bounds),
    maxHoldMs: orDefault("maxHold", maxHold, defaults.maxHoldMs, ttlMinMs, 30 * dayMs),
    retryMinMs,
    retryMaxMs,
    label: label === undefined ? defaults.label : checkedLabel(label),
    signal: signal === undefined ? undefined : checkedSignal(signal),
  };
}

/**
 * Reduces a default TTL to the store's limit. A TTL that the user gives must not exceed the limit.
 */
function withinTtl(defaults: ResolvedOptions, maxTtlMs: number): ResolvedOptions {
  return defaults.ttlMs <= maxTtlMs ? defaults : { ...defaults, ttlMs: maxTtlMs };
}

/** Returns a TTL of the user. Throws InvalidOptionError with the remedy if it is too long. */
export function checkedTtl(ttl: Duration, maxTtlMs: number): number {
  try {
    return durationMs("ttl", ttl, { minMs: ttlMinMs, maxMs: maxTtlMs });
  } catch (error) {
    const ms = msOf(ttl);
    if (ms === undefined || !Number.isSafeInteger(ms) || ms <= maxTtlMs) throw error;
    const limit = maxTtlMs % 1_000 === 0 ? `${maxTtlMs / 1_000} s` : `${maxTtlMs} ms`;
    const given = typeof ttl === "string" ? `"${ttl}"` : `${ms} ms`;
    throw new InvalidOptionError(
      "ttl",
      `at most ${limit}`,
      ttl,
      `ttl ${given} is longer than this store's maxTtl, ${limit}. Leases are renewed while you ` +
        "work; if you need more, set maxTtl, the same on every client",
    );
  }
}

function orDefault(
  option: string,
  value: Duration | undefined,
  fallbackMs: number,
  minMs: number,
  maxMs: number,
): number {
  return value === undefined ? fallbackMs : durationMs(option, value, { minMs, maxMs });
}

/**
 * Checks `renew`. A default is checked again for each call, because its interval may be too long
 * for the TTL of that call.
 */
function checkedRenew(
  value: boolean | Duration | undefined,
  ttlMs: number,
  bounds: StoreBounds,
): boolean | number | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const validityMs = bounds.validityMs?.(ttlMs) ?? ttlMs;
  const maxMs = Math.max(1, Math.floor(validityMs - ttlMs * retryShare));
  try {
    return durationMs("renew", value, { minMs: 1, maxMs });
  } catch {
    const valid = `a lease with ttl ${ttlMs} ms is valid for ${Math.floor(validityMs)} ms`;
    const room = "and a renewal that fails needs time for a second try";
    const range = `true, false, or a duration of whole milliseconds from 1 ms to ${maxMs} ms`;
    throw new InvalidOptionError("renew", `${range} (${valid}, ${room})`, value);
  }
}

function checkedLabel(value: unknown): string {
  if (typeof value === "string" && value.length <= labelLengthMax && value.isWellFormed()) {
    return value;
  }
  throw new InvalidOptionError("label", `a text of at most ${labelLengthMax} characters`, value);
}

function checkedSignal(value: unknown): AbortSignal {
  if (typeof value === "object" && value !== null && "aborted" in value) {
    return value as AbortSignal;
  }
  throw new InvalidOptionError("signal", "an AbortSignal", value);
}
