/** Why a lease is doubtful. */
export interface Doubt {
  readonly cause: unknown;
  /**
   * Counts how often the store has called the lease into doubt: a server was replaced. A reply to a
   * request that was sent before the last time does not clear the doubt.
   */
  readonly raised: number;
}

/** Object with the doubt of a lease, which is undefined if there is none. */
interface Doubtful {
  doubt: Doubt | undefined;
}

/** Records a failed request. Any later confirmation clears this doubt. */
export function noteDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause, raised: raisedOf(lease) };
}

/** Records that a server was replaced. Only a request sent after this can clear the doubt. */
export function raiseDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause, raised: raisedOf(lease) + 1 };
}

/** Returns `raised`. Read before a request is sent, for `settleDoubt` at its reply. */
export function raisedOf(lease: Doubtful | undefined): number {
  return lease?.doubt?.raised ?? 0;
}

/** Clears the doubt after a confirmation. Returns false if `raised` has grown since the request. */
export function settleDoubt(lease: Doubtful | undefined, raised: number): boolean {
  if (raisedOf(lease) !== raised) return false;
  if (lease?.doubt !== undefined) lease.doubt = undefined;
  return true;
}
