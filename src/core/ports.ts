/**
 * Interfaces to the world outside the core: time, randomness, diagnostics. `core/` and the stores
 * of Redis and memory read clocks, set timers and draw random numbers only through these ports. So
 * the simulator can run the same code in virtual time.
 */

/** A moment by both clocks. A lease is over when *either* time has passed its end. */
export interface Instant {
  /** Monotonic time. Never set back, but stands still while the machine is suspended. */
  readonly monotonicMs: number;
  /**
   * Monotonic time plus all that the wall clock has gained on it. Includes the time for which the
   * machine was suspended. Steps back of the wall clock do not count.
   */
  readonly steadyMs: number;
}

/** Cancels a timer; calling it late or twice does nothing. */
export interface CancelTimer {
  (): void;
  /**
   * Changes whether the pending timer keeps the process running. Left out if a new timer is as
   * cheap.
   */
  readonly keepAlive?: (keepAlive: boolean) => void;
}

export interface Clock {
  /** Returns a time that is never set back, but stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Returns a time that counts while the machine is suspended, but can be set. */
  wallMs(): number;
  /**
   * Runs `callback` once, `delayMs` from now or later. With `keepAlive` the pending timer keeps the
   * process running; without it, it never does.
   */
  setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer;
  /** Longest delay of a timer on an idle machine. */
  readonly timerSlackMs: number;
}

/** A clock that returns both times at once. The core and the stores use this one. */
export interface SteadyClock extends Clock {
  now(): Instant;
}

export interface Random {
  /** Returns a number in [0, 1), uniformly distributed. */
  fraction(): number;
  /** Returns 128 random bits as 22 characters of base64url. Called once per manager. */
  uniqueBase(): string;
}

/** Receives events besides `locks.on`. Must cost nothing while there are no subscribers. */
export interface Diagnostics {
  hasSubscribers(name: string): boolean;
  publish(name: string, event: unknown): void;
  /** Called when a listener of the user threw. Must report it without throwing. */
  listenerFailed(error: unknown): void;
}

/** Measures how long the event loop was blocked: by work, garbage collection, a stopped process. */
export interface Stalls {
  /** Called when a manager is created. */
  open?(): void;
  /** Called when a manager is closed. The last one ends the measuring and drops the results. */
  close?(): void;
  /** Called when a lease is requested. The first call starts the measuring; others are cheap. */
  watch(): void;
  /** Returns the longest stall that ended after `sinceMs` (monotonic), or up to 1 s before it. */
  maxMs(sinceMs: number): number;
  /** Returns the longest garbage collection since `sinceMs`. Left out if it cannot be measured. */
  maxGcMs?(sinceMs: number): number;
  /** Returns how long the machine slept since `sinceMs`, or up to 1 s before it. Optional. */
  suspendedMs?(sinceMs: number): number;
}

/** A value that follows a chain of asynchronous calls, as AsyncLocalStorage keeps it. */
export interface AsyncContext {
  /** Runs `work`. In it, and in all that it starts, `current()` returns `value`. */
  run<Result>(value: object, work: () => Result): Result;
  current(): object | undefined;
}

export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly diagnostics: Diagnostics;
  /** Left out if there is none: then work that waits for itself is not refused. */
  readonly asyncContext?: AsyncContext;
  /** Left out if stalls cannot be measured. */
  readonly stalls?: Stalls;
}

/** The runtime that the core and the stores use. */
export interface SteadyRuntime extends Runtime {
  readonly clock: SteadyClock;
}
