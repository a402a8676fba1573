/**
 * Interfaces to the world outside the core: time, randomness, diagnostics. `core/` and the stores
 * of Redis and memory read clocks, set timers and draw random numbers only through these ports. So
 * the simulator can run the same code in virtual time.
 */

/**
 * One moment, as a monotonic and a steady time. A lease is over when *either* time has passed the
 * end of the lease.
 */
export interface Instant {
  /** Monotonic time. Never set back, but stands still while the machine is suspended. */
  readonly monotonicMs: number;
  /**
   * Monotonic time plus all that the wall clock has gained on it. Includes the time for which the
   * machine was suspended. Steps back of the wall clock do not count.
   */
  readonly steadyMs: number;
}

/** Cancels a timer. A late or second call does nothing. */
export interface CancelTimer {
  (): void;
  /**
   * Changes whether the pending timer keeps the process running. Left out if it costs no more to
   * cancel the timer and to set a new one.
   */
  readonly keepAlive?: (keepAlive: boolean) => void;
}

export interface Clock {
  /** Returns a time that is never set back, but stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Returns a time that counts while the machine is suspended, but can be set. */
  wallMs(): number;
  /**
   * Runs `callback` once, `delayMs` from now or later. The pending timer keeps the process running
   * if `keepAlive` is true, and only then.
   */
  setTimer(delayMs: number, keepAlive: boolean, callback: () => void): CancelTimer;
  /** Longest time by which a timer fires too late on an idle machine. */
  readonly timerSlackMs: number;
}

/**
 * A clock that returns the monotonic and the steady time in one reading. The core and the stores
 * use this clock.
 */
export interface SteadyClock extends Clock {
  now(): Instant;
}

export interface Random {
  /** Returns a number in [0, 1), uniformly distributed. */
  fraction(): number;
  /** Returns 128 random bits as 22 characters of base64url. Called once per manager. */
  uniqueBase(): string;
}

/**
 * Receives the events of managers, in addition to the listeners of `locks.on`. Costs almost nothing
 * while no channel has a subscriber.
 */
export interface Diagnostics {
  hasSubscribers(name: string): boolean;
  publish(name: string, event: unknown): void;
  /** Called when a listener of the user threw `error`. Must report the error without throwing. */
  listenerFailed(error: unknown): void;
}

/** Measures how long the event loop was blocked: by work, garbage collection, a stopped process. */
export interface Stalls {
  /** Called when a manager is created. */
  open?(): void;
  /**
   * Called when a manager is closed. The close of the last manager ends the measuring and deletes
   * the results.
   */
  close?(): void;
  /**
   * Called when a lease is requested. The first call starts the measuring. Later calls are cheap.
   */
  watch(): void;
  /**
   * Returns the longest stall that ended after the monotonic time `sinceMs`. The result may also
   * include stalls that ended up to 1 s before `sinceMs`.
   */
  maxMs(sinceMs: number): number;
  /**
   * Returns the longest garbage collection since `sinceMs`. Left out if collections are not
   * measured.
   */
  maxGcMs?(sinceMs: number): number;
  /**
   * Returns for how long the machine was suspended since `sinceMs`. The result may also include
   * time up to 1 s before `sinceMs`. Left out if this is not measured.
   */
  suspendedMs?(sinceMs: number): number;
}

/** Passes a value along a chain of asynchronous calls, as AsyncLocalStorage does. */
export interface AsyncContext {
  /** Runs `work`. `current()` returns `value` in the work and in all calls that the work starts. */
  run<Result>(value: object, work: () => Result): Result;
  current(): object | undefined;
}

export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly diagnostics: Diagnostics;
  /**
   * Left out if the platform has no such context. A call that waits for its own work is then not
   * refused.
   */
  readonly asyncContext?: AsyncContext;
  /** Measures stalls of the event loop. Left out if stalls cannot be measured. */
  readonly stalls?: Stalls;
}

/** The runtime that the core and the stores use. */
export interface SteadyRuntime extends Runtime {
  readonly clock: SteadyClock;
}
