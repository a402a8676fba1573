import type { AcquireRequest } from "../../../core/store.ts";
import { nodeTimeoutMs, type ResolvedStoreOptions } from "../options.ts";

/**
 * When an attempt that begins at `nowMs` ends, whatever the nodes do, by the monotonic clock. Its
 * rounds share this time: the first question, the second one to nodes whose answer was lost, and
 * the raise. It is twice the node timeout, but no more than the node timeout once the caller's wait
 * is over; beyond the validity no answer can be of use.
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
