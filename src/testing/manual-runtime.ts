import type { Diagnostics, Runtime } from "../core/ports.ts";
import { ManualClock, type ManualClockOptions } from "./manual-clock.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface ManualRuntimeOptions extends ManualClockOptions {
  /** Decides every random number and every owner. @default 1 */
  readonly seed?: number;
  /** Where events go besides `locks.on`. @default nobody listens */
  readonly diagnostics?: Diagnostics;
}

export interface ManualRuntime {
  /** For `createLocks(store, { runtime })`; several managers may share it. */
  readonly runtime: Runtime;
  readonly clock: ManualClock;
  /** What listeners of events threw, in order, unless `diagnostics` was given. */
  readonly listenerErrors: readonly unknown[];
}

/**
 * A runtime for tests: its time moves only when told, its randomness comes from a seed. A call
 * that waits (`acquire` with `wait`, a renewal) goes on only in `clock.advance`.
 */
export function manualRuntime(options: ManualRuntimeOptions = {}): ManualRuntime {
  const clock = new ManualClock(options);
  const listenerErrors: unknown[] = [];
  const nobody: Diagnostics = {
    hasSubscribers: () => false,
    publish: () => undefined,
    listenerFailed: (error) => listenerErrors.push(error),
  };
  const random = new SeededRandom(options.seed ?? 1);
  const diagnostics = options.diagnostics ?? nobody;
  return { runtime: { clock, random, diagnostics }, clock, listenerErrors };
}
