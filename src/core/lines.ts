import { TooManyWaitersError, type Holder, type Vote } from "./errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "./lease.ts";
import type { Grant } from "./store.ts";

/** Beyond this a queue is no queue any more but a fault that grows. */
const waitersMax = 10_000;

/** For so long a manager may pass a lock on among its own calls: then others get their chance. */
const turnMsMax = 25;

/** Somebody in a line. */
export interface LineWaiter {
  /** It is its turn, or an attempt has become worth while. May come at any time, and twice. */
  wake(): void;
  /** Whether it waits, and for what a lease of these terms has. */
  wouldTake(terms: Pick<LeaseTerms, "ttlMs" | "label">): boolean;
  /** It has what it waited for. */
  take(offer: Offer): void;
}

/** Why the store did not grant it, for those who wait behind the call that asked. */
export interface Refusal {
  readonly holder: Holder | undefined;
  readonly votes?: () => readonly Vote[];
}

/** The waiters of one resource, in the order they came. */
interface Line {
  /** Each with its number, which grows from one call of the manager to the next. */
  readonly waiters: Map<LineWaiter, number>;
  /** The owner of a lease of ours that was granted it: nobody needs to ask before that is over. */
  heldBy: string | undefined;
  /** When the store granted it to one of ours; passing it on does not count. */
  sinceMs: number;
  /** The last call that had joined any line when the call in front asked the store last. */
  askedAfter: number;
  /** The last call that it may be passed on to: that had joined when what was granted was asked. */
  heirsUpTo: number;
  /** Who had it when the call in front asked last, or has it since. */
  holder: Holder | undefined;
  /** How the nodes answered that call; undefined once one of ours was granted it. */
  votes: (() => readonly Vote[]) | undefined;
}

/**
 * Those of one manager who wait for the same resource: one of them contends with the rest of the
 * world, the others stand behind it and send nothing. There is a line only while somebody waits.
 */
export class Lines {
  readonly #lines = new Map<string, Line>();
  #joined = 0;

  /** Nobody waits for anything. */
  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Whether somebody waits for it, so that a newcomer has to stand behind them. */
  has(resource: string): boolean {
    return !this.isEmpty && this.#lines.has(resource);
  }

  join(resource: string, waiter: LineWaiter): void {
    let line = this.#lines.get(resource);
    if (line === undefined) {
      line = newLine();
      this.#lines.set(resource, line);
    }
    if (line.waiters.size >= waitersMax) throw new TooManyWaitersError([resource], waitersMax);
    this.#joined += 1;
    line.waiters.set(waiter, this.#joined);
  }

  /** The call in front is about to ask the store. */
  asks(resource: string): void {
    const line = this.#lines.get(resource);
    if (line !== undefined) line.askedAfter = this.#joined;
  }

  /** Whether `waiter` is the one that contends. */
  isTurnOf(resource: string, waiter: LineWaiter): boolean {
    const line = this.#lines.get(resource);
    return line !== undefined && line.heldBy === undefined && frontOf(line) === waiter;
  }

  holderOf(resource: string): Holder | undefined {
    return this.#lines.get(resource)?.holder;
  }

  votesOf(resource: string): (() => readonly Vote[]) | undefined {
    return this.#lines.get(resource)?.votes;
  }

  /** For those behind, who ask nobody themselves. */
  noticeRefusal(resource: string, { holder, votes }: Refusal): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.holder = holder;
    line.votes = votes;
  }

  /** `waiter` was granted it: the next one waits for the end of that lease. */
  granted(resource: string, waiter: LineWaiter, holder: Holder, nowMs: number): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.waiters.delete(waiter);
    line.heldBy = holder.owner;
    line.sinceMs = nowMs;
    line.heirsUpTo = line.askedAfter;
    line.holder = holder;
    line.votes = undefined;
    if (line.waiters.size === 0) this.#lines.delete(resource);
  }

  /**
   * The next one, while a lease of `owner` has it and the turn of this manager is not over. Only a
   * call that joined before the store was asked for what it granted: nothing that was done to the
   * lock before a call began can then be hidden from that call.
   */
  successorOf(resource: string, owner: string, nowMs: number): LineWaiter | undefined {
    const line = this.#lines.get(resource);
    if (line?.heldBy !== owner || nowMs - line.sinceMs >= turnMsMax) return undefined;
    const [front] = line.waiters;
    return front !== undefined && front[1] <= line.heirsUpTo ? front[0] : undefined;
  }

  /** The lock is about to be broken: the next call has to ask the store. */
  endTurn(resource: string): void {
    const line = this.#lines.get(resource);
    if (line !== undefined) line.heirsUpTo = 0;
  }

  /** The lock was passed on to `waiter`, who was the next one. */
  passedOn(resource: string, waiter: LineWaiter, fence: bigint | undefined): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.waiters.delete(waiter);
    if (line.holder !== undefined && fence !== undefined) line.holder = { ...line.holder, fence };
    if (line.waiters.size === 0) this.#lines.delete(resource);
  }

  /** `waiter` gives up. Where it was the one that contended, the next one does. */
  leave(resource: string, waiter: LineWaiter): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    const contended = line.heldBy === undefined && frontOf(line) === waiter;
    line.waiters.delete(waiter);
    if (line.waiters.size === 0) this.#lines.delete(resource);
    else if (contended) frontOf(line)?.wake();
  }

  /**
   * A lease of ours on these is over, given back or lost: whoever is next asks at once. One that
   * was lost before and is given back now says nothing about the lease of its successor.
   */
  over({ resources, owner }: Pick<Grant, "resources" | "owner">): void {
    if (this.isEmpty) return;
    for (const resource of resources) {
      const line = this.#lines.get(resource);
      if (line === undefined || (line.heldBy !== undefined && line.heldBy !== owner)) continue;
      line.heldBy = undefined;
      frontOf(line)?.wake();
    }
  }
}

function newLine(): Line {
  return {
    waiters: new Map(),
    heldBy: undefined,
    sinceMs: 0,
    askedAfter: 0,
    heirsUpTo: 0,
    holder: undefined,
    votes: undefined,
  };
}

function frontOf({ waiters }: Line): LineWaiter | undefined {
  return waiters.keys().next().value;
}
