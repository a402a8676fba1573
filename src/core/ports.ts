/**
 * What the core needs from outside. Nothing in `core/` or `stores/` reads a clock, sets a timer or
 * draws a random number except through these ports, so that the simulator can drive the very same
 * code in virtual time.
 */

/** A moment as both clocks have it. A lease is over when *either* of its times says so. */
export interface Instant {
  /** Never set back, but stands still while the machine is suspended. */
  readonly monotonicMs: number;
  /**
   * The same, and all that the wall clock has gained on it so far: also the time that the machine
   * was suspended, and no time that the wall clock was set back.
   */
  readonly steadyMs: number;
}

/** Cancels a timer; calling it late or twice does nothing. */
export interface CancelTimer {
  (): void;
  /**
   * Changes whether the pending timer keeps the process running. Left out where a timer is as
   * cheap to set anew.
   */
  readonly keepAlive?: (keepAlive: boolean) => void;
}

export interface Clock {
  /** Never set back, but stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Keeps counting through a suspend, but can be set by anyone. */
  wallMs(): number;
  /**
   * Runs `callback` once, `delayMs` from now or later. With `keepAlive` the pending timer keeps the
   * process running; without it, it never does.
   */
  setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer;
  /** How much later than asked a timer may fire on an idle machine. */
  readonly timerSlackMs: number;
}

/** A clock that is looked at as one: what the core and the stores work with. */
export interface SteadyClock extends Clock {
  now(): Instant;
}

export interface Random {
  /** Uniform in [0, 1). */
  fraction(): number;
  /** 128 random bits as 22 characters of base64url; drawn once per manager. */
  uniqueBase(): string;
}

/** Where events go besides `locks.on`. Must cost nothing while nobody listens. */
export interface Diagnostics {
  hasSubscribers(name: string): boolean;
  publish(name: string, event: unknown): void;
  /** A listener of the user threw: say so without breaking the lock. */
  listenerFailed(error: unknown): void;
}

/** How long the event loop was blocked: by work, by the garbage collector, by a stopped process. */
export interface Stalls {
  /** A manager was made. */
  open?(): void;
  /** A manager was closed. Measuring ends with the last one, and forgets what was measured. */
  close?(): void;
  /** A lease is asked for: from now on stalls matter. Cheap; the first call starts measuring. */
  watch(): void;
  /** The longest stall that ended after `sinceMs` (monotonic), or up to a second before it. */
  maxMs(sinceMs: number): number;
  /** The longest garbage collection since then. Left out where it cannot be measured. */
  gcMsMax?(sinceMs: number): number;
  /** For how long the machine slept since then, or up to a second before. Likewise. */
  suspendedMs?(sinceMs: number): number;
}

/** A value that follows a chain of asynchronous calls, as AsyncLocalStorage keeps it. */
export interface AsyncContext {
  /** Runs `work`. Whatever it begins, at once or later, finds `value` as `current()`. */
  run<Result>(value: object, work: () => Result): Result;
  current(): object | undefined;
}

export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly diagnostics: Diagnostics;
  /** Left out where there is none: a work that waits for itself is then not refused. */
  readonly asyncContext?: AsyncContext;
  /** Left out where stalls cannot be measured. */
  readonly stalls?: Stalls;
}

/** What a store is opened with. */
export interface SteadyRuntime extends Runtime {
  readonly clock: SteadyClock;
}
