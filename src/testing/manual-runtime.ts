import type { Diagnostics, Runtime } from "../core/ports.ts";
import { ManualClock, type ManualClockOptions } from "./manual-clock.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface ManualRuntimeOptions extends ManualClockOptions {
  /** Seed that determines every random number and every owner. @default 1 */
  readonly seed?: number;
  /** Receives all events, in addition to the listeners of `locks.on`. @default no subscribers */
  readonly diagnostics?: Diagnostics;
}

export interface ManualRuntime {
  /** Runtime to pass to `createLocks(store, { runtime })`. Several managers may share it. */
  readonly runtime: Runtime;
  readonly clock: ManualClock;
  /**
   * Errors that event listeners threw, in order. Empty if the test passed its own `diagnostics`.
   */
  readonly listenerErrors: readonly unknown[];
}

/**
 * Creates a runtime for tests. A test moves its time, and a seed determines its random numbers. A
 * call that waits (`acquire` with `wait`, a renewal) continues only during `clock.advance`.
 */
export function manualRuntime(options: ManualRuntimeOptions = {}): ManualRuntime {
  const clock = new ManualClock(options);
  const listenerErrors: unknown[] = [];
  const silent: Diagnostics = {
    hasSubscribers: () => false,
    publish: () => undefined,
    listenerFailed: (error) => listenerErrors.push(error),
  };
  const random = new SeededRandom(options.seed ?? 1);
  const diagnostics = options.diagnostics ?? silent;
  return { runtime: { clock, random, diagnostics }, clock, listenerErrors };
}
