import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls until `attempt` resolves to a value other than false. Rejects with its last error after
 * `withinMs`, which is a limit for a test that fails and no claim about time.
 */
export async function eventually<Result>(
  attempt: () => Promise<Result> | Result,
  withinMs = 20_000,
): Promise<Result> {
  const deadline = Date.now() + withinMs;
  let failure: unknown = new Error(`still false after ${withinMs} ms`);
  do {
    try {
      const result = await attempt();
      if (result !== false) return result;
    } catch (error) {
      failure = error;
    }
    await sleep(20);
  } while (Date.now() < deadline);
  throw failure;
}
