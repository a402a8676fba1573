import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls until `attempt` resolves, and to anything but false; otherwise rejects with its last error
 * after `withinMs`. A bound for what must happen at some time, not a claim about when.
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
