/**
 * Turns a scoped form, `using(work)`, into acquire and release. Resolves with the argument of the
 * work once it runs, and with a function that ends the work.
 */
export async function opened<Given>(
  using: (work: (given: Given) => Promise<void>) => Promise<unknown>,
): Promise<{ readonly given: Given; readonly end: () => Promise<unknown> }> {
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  let scope: Promise<unknown> = Promise.resolve();
  const given = await new Promise<Given>((resolve, reject) => {
    scope = using(async (value) => {
      resolve(value);
      await ended;
    });
    // Before the work has begun this is the refusal; afterwards `end` returns it.
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
