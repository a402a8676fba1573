import { performance } from "node:perf_hooks";
import * as timers from "node:timers";
import { runInNewContext } from "node:vm";

/**
 * Problem: fake timers of a test (Vitest, Jest, Sinon, `node:test`) replace timers and clocks for
 * code that is already loaded, and often not all of them. Waits would never end, and leases would
 * depend on clocks that disagree.
 *
 * Idea: this module saves timers and clocks once, when it is loaded. Fake timers that are installed
 * later have no effect on leases and waits, which use the saved timers and clocks.
 *
 * Limit: if timers were replaced before this module is loaded, it saves the fake ones.
 * `fakeTimersAtLoad` is then true.
 */

export const setTimeout: typeof timers.setTimeout = timers.setTimeout;
export const clearTimeout: typeof timers.clearTimeout = timers.clearTimeout;
export const setImmediate: typeof timers.setImmediate = timers.setImmediate;
export const clearImmediate: typeof timers.clearImmediate = timers.clearImmediate;

/** Returns CLOCK_MONOTONIC, which is never set, but stands still while the machine is suspended. */
export const monotonicMs: () => number = performance.now.bind(performance);

export const wallMs: () => number = isNative(Date.now) ? Date.now : dateOfItsOwn();

export const fakeTimersAtLoad: boolean = isFakeTimer(setTimeout);

function isNative(value: () => number): boolean {
  return Function.prototype.toString.call(value).includes("[native code]");
}

/** Returns `Date.now` of a new context, which no test has replaced. */
function dateOfItsOwn(): () => number {
  return runInNewContext("Date.now") as () => number;
}

/**
 * True if `timer` comes from Sinon (also in Vitest and Jest), Jest's legacy timers or `node:test`.
 */
function isFakeTimer(timer: object & { readonly name: string }): boolean {
  return "clock" in timer || "_isMockFunction" in timer || timer.name.startsWith("bound ");
}
