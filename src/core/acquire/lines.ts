import { TooManyWaitersError, type Holder, type Vote } from "../errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "../lease/lease.ts";
import type { Grant } from "../store.ts";

/** Limit per resource. A longer queue means that something is stuck: new calls are rejected. */
const waitersMax = 10_000;

/** Longest time for hand-overs among a manager's own calls, after which others get a chance. */
const turnMsMax = 25;

/** A call in a local queue. */
export interface LineWaiter {
  /** Called when the call may send an attempt. Can come at any time, and more than once. */
  wake(): void;
  /** True if the call waits, for a lease with these terms. */
  wouldTake(terms: Pick<LeaseTerms, "ttlMs" | "label">): boolean;
  /** Gives the call the lock that it waits for. */
  take(offer: Offer): void;
}

/** Why the store refused the call in front. The calls behind it use this for their errors. */
export interface Refusal {
  readonly holder: Holder | undefined;
  readonly votes?: () => readonly Vote[];
}

/** Queue of one resource: its waiting calls, in the order in which they came. */
interface Line {
  /** Waiting calls with their numbers. Numbers grow with each call that joins any queue. */
  readonly waiters: Map<LineWaiter, number>;
  /** Owner of a lease of this manager on the resource. No call sends attempts until it is over. */
  heldBy: string | undefined;
  /** When the store granted that lease. A hand-over does not change it. */
  sinceMs: number;
  /** Number of the newest call when the call in front last sent an attempt. */
  askedAfter: number;
  /** Number of the newest call when the granted attempt was sent: the last that may inherit. */
  heirsUpTo: number;
  /** Last known holder: from the last refusal of the call in front, or from a grant since. */
  holder: Holder | undefined;
  /** Votes in that refusal; undefined once a call of this manager was granted the resource. */
  votes: (() => readonly Vote[]) | undefined;
}

/**
 * Local queues: the waiting calls of one manager, by resource.
 *
 * Problem: if each of 1,000 calls that wait for one resource sent attempts, they would load the
 * nodes. And between two calls of one process, a release and an attempt are two needless requests.
 *
 * Idea: only the call in front sends attempts; the calls behind it send nothing. While a lease of
 * this manager holds the resource, no call does. When that lease is released, `hand-over.ts` can
 * pass the lock to the call in front without a request; otherwise that call sends an attempt.
 *
 * Limits: hand-overs end after 25 ms, so that other managers get a chance. Only calls that already
 * waited when the granted attempt was sent may inherit: a newer call might miss a break of the lock
 * that happened before it began. A queue exists only while calls wait.
 */
export class Lines {
  readonly #lines = new Map<string, Line>();
  #joined = 0;

  /** True if no call waits for any resource. */
  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** True if calls wait for the resource. A new call must wait behind them. */
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

  /** Called before the call in front sends an attempt. */
  asks(resource: string): void {
    const line = this.#lines.get(resource);
    if (line !== undefined) line.askedAfter = this.#joined;
  }

  /** True if `waiter` may send attempts: it is in front, and no lease of this manager is held. */
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

  /** Records the refusal of the call in front for the calls behind it. */
  noticeRefusal(resource: string, { holder, votes }: Refusal): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.holder = holder;
    line.votes = votes;
  }

  /** Called when `waiter` was granted the resource. The next call waits until that lease ends. */
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
   * Returns the call in front if the lease of `owner` may be handed over to it: this manager's time
   * is not over, and the call already waited when the granted attempt was sent.
   */
  successorOf(resource: string, owner: string, nowMs: number): LineWaiter | undefined {
    const line = this.#lines.get(resource);
    if (line?.heldBy !== owner || nowMs - line.sinceMs >= turnMsMax) return undefined;
    const [front] = line.waiters;
    return front !== undefined && front[1] <= line.heirsUpTo ? front[0] : undefined;
  }

  /** Called before the lock is broken: the next call must send an attempt. */
  endTurn(resource: string): void {
    const line = this.#lines.get(resource);
    if (line !== undefined) line.heirsUpTo = 0;
  }

  /** Called when the lock was handed over to `waiter`, the call in front. */
  passedOn(resource: string, waiter: LineWaiter, fence: bigint | undefined): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.waiters.delete(waiter);
    if (line.holder !== undefined && fence !== undefined) line.holder = { ...line.holder, fence };
    if (line.waiters.size === 0) this.#lines.delete(resource);
  }

  /** Called when `waiter` gives up. If it was the one that sends attempts, the next one does. */
  leave(resource: string, waiter: LineWaiter): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    const contended = line.heldBy === undefined && frontOf(line) === waiter;
    line.waiters.delete(waiter);
    if (line.waiters.size === 0) this.#lines.delete(resource);
    else if (contended) frontOf(line)?.wake();
  }

  /**
   * Called when a lease of this manager is released or lost: wakes the calls in front. A lease that
   * was lost before and is released now leaves a later lease of this manager as it is.
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
