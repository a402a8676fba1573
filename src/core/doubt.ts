/** Why a lease is in doubt. */
export interface Doubt {
  readonly cause: unknown;
  /** How often what granted it has changed: answers from before that settle nothing. */
  readonly raised: number;
}

/** Where a lease keeps it, while there is any. */
interface Doubtful {
  doubt: Doubt | undefined;
}

/** A question went unanswered: any later yes ends the doubt. */
export function noteDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause, raised: raisedOf(lease) };
}

/** What granted it has changed: only a yes to a question asked after this ends the doubt. */
export function raiseDoubt(lease: Doubtful, cause: unknown): void {
  lease.doubt = { cause, raised: raisedOf(lease) + 1 };
}

/** To be asked before a question: how often what granted it has changed by then. */
export function raisedOf(lease: Doubtful | undefined): number {
  return lease?.doubt?.raised ?? 0;
}

/** A yes to a question asked when it was `raised` so often. Says whether all is well now. */
export function settleDoubt(lease: Doubtful | undefined, raised: number): boolean {
  if (raisedOf(lease) !== raised) return false;
  if (lease?.doubt !== undefined) lease.doubt = undefined;
  return true;
}
