import { setTimeout as sleep } from "node:timers/promises";

/** Undoes what a fault did. */
export type Heal = () => void | Promise<void>;

/**
 * Calls `strike` now and then every `everyMs`, until healed. Resolves after the first time; a
 * strike that fails is reported by the heal.
 */
export async function repeat(everyMs: number, strike: () => void | Promise<void>): Promise<Heal> {
  const healed = new AbortController();
  await strike();
  const striking = (async () => {
    for (;;) {
      await sleep(everyMs, undefined, { signal: healed.signal }).catch(() => undefined);
      if (healed.signal.aborted) return;
      await strike();
    }
  })();
  // Reported when healed, and not before.
  striking.catch(() => undefined);
  return () => {
    healed.abort();
    return striking;
  };
}
