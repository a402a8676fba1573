import type { AcquireRequest } from "../../../core/store.ts";
import { nodeTimeoutMs, type ResolvedStoreOptions } from "../options.ts";

/**
 * Returns the monotonic time at which an attempt that begins at `nowMs` ends at the latest. All its
 * rounds share this limit: the acquire, repeated acquires and the raise. The limit is two node
 * timeouts, but only one after the end of the caller's wait, and never beyond the validity.
 */
export function attemptEndsMs(
  options: ResolvedStoreOptions,
  { started, ttlMs, waitEndsMs = Infinity }: AcquireRequest,
  validityMs: number,
  nowMs: number,
): number {
  const timeoutMs = nodeTimeoutMs(options, ttlMs);
  const patienceMs = Math.min(nowMs + timeoutMs, Math.max(nowMs, waitEndsMs)) + timeoutMs;
  return Math.min(patienceMs, started.monotonicMs + validityMs);
}
