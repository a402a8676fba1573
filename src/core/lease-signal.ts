import type { LeaseExtras } from "./lease-extras.ts";

/**
 * A lease's AbortSignal asks the clock each time it is read. After a pause (a blocked event loop, a
 * stopped process) other callbacks can run before our timer does: without this, the first thing
 * they see would be a signal that still says "not aborted" for a lease that is long over.
 */

interface Judged {
  judge(): void;
}

/** The signal of a lease, made when it is first asked for. */
export function signalOf(extras: LeaseExtras, lease: Judged): AbortSignal {
  if (extras.controller === undefined) {
    extras.controller = new AbortController();
    askBeforeReading(extras.controller, lease);
    const over = extras.loss ?? extras.closed;
    if (over !== undefined) extras.controller.abort(over);
  }
  return extras.controller.signal;
}

/** Makes `controller.signal` judge the lease before it answers, which aborts it when it is time. */
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
