// @ts-check
/** The scoped form of a lock library, `using(work)`, as acquire and release. */

/**
 * Resolves with the argument of the work once it runs, and with a function that ends the work.
 *
 * @template Given
 * @param {(work: (given: Given) => Promise<void>) => Promise<unknown>} using
 * @returns {Promise<{ readonly given: Given, readonly end: () => Promise<unknown> }>}
 */
export async function opened(using) {
  let end = () => {};
  /** @type {Promise<void>} */
  const ended = new Promise((resolve) => {
    end = resolve;
  });
  /** @type {Promise<unknown>} */
  let scope = Promise.resolve();
  /** @type {Given} */
  const given = await new Promise((resolve, reject) => {
    scope = using(async (value) => {
      resolve(value);
      await ended;
    });
    // Before the work has begun this is the refusal. Afterwards `end` returns it.
    scope.catch(reject);
  });
  return {
    given,
    end: () => {
      end();
      return scope;
    },
  };
}
