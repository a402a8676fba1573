import { nowMs } from "../monotonic.ts";
import type { BenchLease } from "./bench-lock.ts";

/**
 * A lease of a library whose `using` gives a signal but not the lock. It is trusted while the
 * signal is not aborted and the expiration is ahead.
 */
export function signalLease(
  signal: AbortSignal,
  end: () => Promise<unknown>,
  expiresAt: () => number,
): BenchLease {
  return {
    fenced: undefined,
    startedMs: undefined,
    trusted: () => !signal.aborted && expiresAt() > Date.now(),
    untilMs: () => nowMs() + expiresAt() - Date.now(),
    onLost: (listener) => signal.addEventListener("abort", () => listener("signal")),
    release: () =>
      end().then(
        () => "released",
        (error: unknown) => String(error),
      ),
  };
}
