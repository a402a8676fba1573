// @ts-check
/** Runs the microtask queue of Node for the simulator. */

/** @type {unknown[]} */
let unhandled = [];
let isListening = false;

/** @returns {import("../../src/simulator/index.ts").SimulatorHost} */
export function nodeHost() {
  if (!isListening) {
    isListening = true;
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
  }
  // Runs ticks and microtasks until none is left. Not documented, but present since Node 0.x. It is
  // sixty times faster than a turn of the event loop, and as exact. A test compares the two.
  const { _tickCallback: tick } = /** @type {{ _tickCallback?: () => void }} */ (
    /** @type {unknown} */ (process)
  );
  return {
    drain() {
      if (tick === undefined) return new Promise((resolve) => setImmediate(resolve));
      tick();
      return undefined;
    },
    takeUnhandledRejections() {
      const taken = unhandled;
      unhandled = [];
      return taken;
    },
  };
}

/** @returns {import("../../src/simulator/index.ts").SimulatorHost} */
export function turningHost() {
  return { drain: () => new Promise((resolve) => setImmediate(resolve)) };
}

/**
 * Runs `work` where no microtask is under way, which a host that drains at once needs.
 *
 * @template Result
 * @param {() => Result} work
 * @returns {Promise<Result>}
 */
export function outsideMicrotasks(work) {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      const { stackTraceLimit } = Error;
      // Every lost message is an Error, and its stack is not used.
      Error.stackTraceLimit = 0;
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      } finally {
        Error.stackTraceLimit = stackTraceLimit;
      }
    });
  });
}
