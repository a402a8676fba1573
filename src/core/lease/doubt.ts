import { ReplicationError } from "../errors.ts";
import type { Instant } from "../ports.ts";

/** Why a lease is doubtful. */
export interface Doubt {
  readonly cause: unknown;
}

/** An extension under way. */
export interface SentRequest {
  readonly started: Instant;
  /** `doubtCountOf` the lease when it was sent. */
  readonly doubts: number;
}

/** Object with the doubt of a lease, which is undefined if there is none. */
interface Doubtful {
  doubt: Doubt | undefined;
  /**
   * Counts how often the store has called the lease into doubt: a server was replaced. It never
   * falls: a reply to a request that was sent before the last time confirms nothing.
   */
  doubtCount: number;
}

/** Records a failed request. Any later confirmation clears this doubt. */
export function noteDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause };
}

/** Records that a server was replaced. Only a request sent after this can confirm the lease. */
export function raiseDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause };
  lease.doubtCount += 1;
}

/** Returns the count to pass to `settleDoubt` at the reply. Read before a request is sent. */
export function doubtCountOf(lease: Doubtful | undefined): number {
  return lease?.doubtCount ?? 0;
}

/**
 * Clears the doubt after a confirmation. Returns an error if the count has grown since the request:
 * the server that confirmed it may be the one that was replaced.
 */
export function settleDoubt(
  lease: Doubtful | undefined,
  countAtRequest: number,
  resources: readonly string[],
): ReplicationError | undefined {
  if (doubtCountOf(lease) !== countAtRequest) {
    const why = "a server was replaced while the request was under way; the lease is checked again";
    return new ReplicationError("replaced", why, { cause: lease?.doubt?.cause, resources });
  }
  if (lease?.doubt !== undefined) lease.doubt = undefined;
  return undefined;
}
