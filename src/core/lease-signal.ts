/**
 * A lease's AbortSignal asks the clock each time it is read. After a pause (a blocked event loop, a
 * stopped process) other callbacks can run before our timer does: without this, the first thing
 * they see would be a signal that still says "not aborted" for a lease that is long over.
 */

/** Makes `controller.signal` call `judge` before it answers. `judge` aborts when it is time. */
export function askBeforeReading(controller: AbortController, judge: () => void): AbortSignal {
  const { signal } = controller;
  Object.defineProperties(signal, {
    aborted: {
      get: (): unknown => {
        judge();
        return Reflect.get(AbortSignal.prototype, "aborted", signal);
      },
    },
    reason: {
      get: (): unknown => {
        judge();
        return Reflect.get(AbortSignal.prototype, "reason", signal);
      },
    },
    throwIfAborted: {
      value: (): void => {
        if (signal.aborted) throw signal.reason;
      },
    },
  });
  return signal;
}
