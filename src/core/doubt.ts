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

/** Called before a question; on a yes to it, call the result: it says whether all is well. */
export function askWhile(find: () => Doubtful | undefined): () => boolean {
  const before = raisedOf(find());
  return () => {
    const lease = find();
    if (raisedOf(lease) !== before) return false;
    if (lease !== undefined) lease.doubt = undefined;
    return true;
  };
}

function raisedOf(lease: Doubtful | undefined): number {
  return lease?.doubt?.raised ?? 0;
}
