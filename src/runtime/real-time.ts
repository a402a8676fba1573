import { performance } from "node:perf_hooks";
import * as timers from "node:timers";
import { runInNewContext } from "node:vm";

/**
 * The problem: fake timers of a test (Vitest, Jest, Sinon, `node:test`) replace timers and clocks
 * of code that is loaded already, and often not all of them: waits would never end, and leases
 * would be judged by clocks that disagree.
 *
 * The idea: timers and clocks are taken once, when this module is loaded. Fake timers that are
 * installed later do not reach it: leases and waits go by real time.
 *
 * The limit: timers that were replaced before cannot be found any more. `fakeTimersAtLoad` is true
 * then.
 */

export const setTimeout: typeof timers.setTimeout = timers.setTimeout;
export const clearTimeout: typeof timers.clearTimeout = timers.clearTimeout;
export const setImmediate: typeof timers.setImmediate = timers.setImmediate;
export const clearImmediate: typeof timers.clearImmediate = timers.clearImmediate;

/** CLOCK_MONOTONIC: nothing sets it, but it stands still while the machine is suspended. */
export const monotonicMs: () => number = performance.now.bind(performance);

export const wallMs: () => number = isNative(Date.now) ? Date.now : dateOfItsOwn();

export const fakeTimersAtLoad: boolean = isFakeTimer(setTimeout);

function isNative(value: () => number): boolean {
  return Function.prototype.toString.call(value).includes("[native code]");
}

/** A new context has a Date that no test has replaced. */
function dateOfItsOwn(): () => number {
  return runInNewContext("Date.now") as () => number;
}

/** By the marks of Sinon (also in Vitest and Jest), of Jest's legacy timers and of `node:test`. */
function isFakeTimer(timer: object & { readonly name: string }): boolean {
  return "clock" in timer || "_isMockFunction" in timer || timer.name.startsWith("bound ");
}
