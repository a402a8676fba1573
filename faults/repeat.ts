import { setTimeout as sleep } from "node:timers/promises";

/** Undoes the effects of a fault. */
export type Heal = () => void | Promise<void>;

/**
 * Calls `strike` about every `everyMs` until it is healed. Resolves after the first call. If a
 * later call fails, the heal rejects.
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
  // The error is reported by the heal.
  striking.catch(() => undefined);
  return () => {
    healed.abort();
    return striking;
  };
}
