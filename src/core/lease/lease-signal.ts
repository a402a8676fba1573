import type { LeaseExtras } from "./lease-extras.ts";

/**
 * Problem: after a pause (a blocked event loop, a stopped process) other callbacks can run before
 * our timer does. They would see a signal that is not aborted, for a lease that is long over.
 *
 * Idea: each read of the signal checks the clocks first, and aborts it if the lease is over.
 *
 * Limit: code that only listens for `abort` is called when our timer runs, or at the next read.
 */

interface Judged {
  judge(): void;
}

/** Returns the signal of a lease, created at its first use. */
export function signalOf(extras: LeaseExtras, lease: Judged): AbortSignal {
  if (extras.controller === undefined) {
    extras.controller = new AbortController();
    askBeforeReading(extras.controller, lease);
    const over = extras.loss ?? extras.closed;
    if (over !== undefined) extras.controller.abort(over);
  }
  return extras.controller.signal;
}

/** Makes each read of `controller.signal` judge the lease first, which aborts it if it is over. */
function askBeforeReading(controller: AbortController, lease: Judged): void {
  const { signal } = controller;
  Object.defineProperties(signal, {
    aborted: {
      get: (): unknown => {
        lease.judge();
        return Reflect.get(AbortSignal.prototype, "aborted", signal);
      },
    },
    reason: {
      get: (): unknown => {
        lease.judge();
        return Reflect.get(AbortSignal.prototype, "reason", signal);
      },
    },
    throwIfAborted: {
      value: (): void => {
        if (signal.aborted) throw signal.reason;
      },
    },
  });
}
