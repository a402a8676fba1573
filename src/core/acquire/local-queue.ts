import { TooManyWaitersError, type Holder, type Vote } from "../errors.ts";
import type { Instant } from "../ports.ts";
import type { Grant, OpenStore } from "../store.ts";

/**
 * Limit for the calls that wait for one resource. A longer queue means that work is stuck, so new
 * calls are rejected.
 */
const waitersMax = 10_000;
/**
 * Longest time for which calls of one manager hand a lock over among themselves. Then the lock is
 * released, so that other managers can acquire it.
 */
const handOversMsMax = 25;
/** Least share of the lease's validity that must be left for a hand-over to the next call. */
const leastShare = 3 / 4;

/** Options that a waiting call must have to take over a lease: the TTL and label of that lease. */
export interface Wanted {
  readonly ttlMs: number;
  readonly label: string | undefined;
}

/** A lock that one call of a manager hands over to the next, without a request to the store. */
export interface Offer {
  readonly grant: Grant;
  /** Time of the hand-over. `validityMs`, what the previous holder had left, counts from here. */
  readonly started: Instant;
  readonly validityMs: number;
}

/** Waiting call in a local queue, as the queue sees it. */
export interface QueuedCall {
  /** Called when the call may send an attempt. Can come at any time, and more than once. */
  wake(): void;
  /** True if the call still waits, and wants a lease with this TTL and label. */
  accepts(wanted: Wanted): boolean;
  /** Gives the call the lock that it waits for. */
  take(offer: Offer): void;
}

/** Refused attempt of the call in front. The calls behind it use these details for their errors. */
export interface Refusal {
  readonly holder: Holder | undefined;
  readonly votes?: () => readonly Vote[];
}

/** The waiting calls of one resource, in the order in which they came. */
interface LocalQueue {
  /** Waiting calls with their numbers. Numbers grow with each call that joins any queue. */
  readonly calls: Map<QueuedCall, number>;
  /**
   * Owner of a lease of this manager on the resource. Calls send no attempts until that lease ends.
   */
  heldBy: string | undefined;
  /**
   * Time at which the store granted the lease of `heldBy`. A hand-over does not change the time.
   */
  sinceMs: number;
  /** Number of the newest call when the call in front last sent an attempt. */
  newestAtAttempt: number;
  /**
   * Number of the newest call that may take over the lock. A call may if it already waited when the
   * granted attempt was sent.
   */
  newestHeir: number;
  /** Last known holder, from the last refusal of the call in front or from a later grant. */
  holder: Holder | undefined;
  /** Votes in the last refusal of the call in front. Undefined after a later grant. */
  votes: (() => readonly Vote[]) | undefined;
}

/**
 * Local queues: the waiting calls of one manager, by resource.
 *
 * Problem: if each of 1,000 calls that wait for one resource sent attempts, they would load the
 * nodes. And between two calls of one process, a release and an attempt are two needless requests.
 *
 * Idea: only the call in front sends attempts. While a lease of this manager holds the resource, no
 * call sends any. When that lease is released, `handOver` can pass the lock to the call in front
 * without a request. Otherwise that call sends an attempt.
 *
 * Limits: hand-overs end after 25 ms, so that other managers get a chance. Only calls that already
 * waited when the granted attempt was sent may take over: a newer call might miss a break of the
 * lock that happened before the call. A queue exists only while calls wait.
 */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();
  #joined = 0;

  /** True if calls wait for the resource. A new call must wait behind them. */
  has(resource: string): boolean {
    return this.#queues.size > 0 && this.#queues.has(resource);
  }

  join(resource: string, call: QueuedCall): void {
    let queue = this.#queues.get(resource);
    if (queue === undefined) {
      queue = newQueue();
      this.#queues.set(resource, queue);
    }
    if (queue.calls.size >= waitersMax) throw new TooManyWaitersError([resource], waitersMax);
    this.#joined += 1;
    queue.calls.set(call, this.#joined);
  }

  /** Called before the call in front sends an attempt. */
  attemptBegins(resource: string): void {
    const queue = this.#queues.get(resource);
    if (queue !== undefined) queue.newestAtAttempt = this.#joined;
  }

  /** True if `call` may send attempts: it is in front, and no lease of this manager is held. */
  isFirst(resource: string, call: QueuedCall): boolean {
    const queue = this.#queues.get(resource);
    return queue !== undefined && queue.heldBy === undefined && frontOf(queue) === call;
  }

  holderOf(resource: string): Holder | undefined {
    return this.#queues.get(resource)?.holder;
  }

  votesOf(resource: string): (() => readonly Vote[]) | undefined {
    return this.#queues.get(resource)?.votes;
  }

  /**
   * Stores details of a refused attempt of the call in front. The calls behind it send no attempts
   * of their own, and use these details in their errors.
   */
  refused(resource: string, { holder, votes }: Refusal): void {
    const queue = this.#queues.get(resource);
    if (queue === undefined) return;
    queue.holder = holder;
    queue.votes = votes;
  }

  /** Called when `call` was granted the resource. The next call waits until that lease ends. */
  granted(resource: string, call: QueuedCall, holder: Holder, nowMs: number): void {
    const queue = this.#queues.get(resource);
    if (queue === undefined) return;
    queue.calls.delete(call);
    queue.heldBy = holder.owner;
    queue.sinceMs = nowMs;
    queue.newestHeir = queue.newestAtAttempt;
    queue.holder = holder;
    queue.votes = undefined;
    if (queue.calls.size === 0) this.#queues.delete(resource);
  }

  /**
   * Hands the lock of a lease over to the next waiting call, under a greater fence that the store
   * has reserved. No request is sent. The next call must want the same TTL and label, and must have
   * waited before the granted attempt was sent. Enough of the validity, `leftMs`, must be left.
   *
   * Returns a copy of the grant with the old fence, for the old lease. Returns undefined if the
   * lock was not handed over.
   */
  handOver(
    store: OpenStore,
    grant: Grant,
    wanted: Wanted,
    started: Instant,
    leftMs: number,
  ): Grant | undefined {
    if (this.#queues.size === 0 || store.handOver === undefined) return undefined;
    const [resource, ...others] = grant.resources;
    if (resource === undefined || others.length > 0) return undefined;
    const queue = this.#queues.get(resource);
    if (queue?.heldBy !== grant.owner) return undefined;
    if (started.monotonicMs - queue.sinceMs >= handOversMsMax) return undefined;
    const [front] = queue.calls;
    if (front === undefined || front[1] > queue.newestHeir) return undefined;
    const [next] = front;
    if (!next.accepts(wanted)) return undefined;
    const isEnough = leftMs >= grant.validityMs * leastShare && leftMs <= grant.validityMs;
    if (!isEnough) return undefined;
    const { owner, fence, resources, validityMs } = grant;
    const kept: Grant = { resources, owner, fence, validityMs };
    if (!store.handOver(grant)) return undefined;
    next.take({ grant, started, validityMs: leftMs });
    queue.calls.delete(next);
    if (queue.holder !== undefined && grant.fence !== undefined) {
      queue.holder = { ...queue.holder, fence: grant.fence };
    }
    if (queue.calls.size === 0) this.#queues.delete(resource);
    return kept;
  }

  /**
   * Called before `break` takes the lock away: it is not handed over any more, and the next call
   * must send an attempt.
   */
  endHandOvers(resource: string): void {
    const queue = this.#queues.get(resource);
    if (queue !== undefined) queue.newestHeir = 0;
  }

  /**
   * Called when `call` gives up. If it was the call that sends attempts, the next call takes its
   * place.
   */
  leave(resource: string, call: QueuedCall): void {
    const queue = this.#queues.get(resource);
    if (queue === undefined) return;
    const wasFirst = queue.heldBy === undefined && frontOf(queue) === call;
    queue.calls.delete(call);
    if (queue.calls.size === 0) this.#queues.delete(resource);
    else if (wasFirst) frontOf(queue)?.wake();
  }

  /**
   * Called when a lease of this manager is released or lost: wakes the calls in front. Does nothing
   * for a lost lease that is released late, if this manager holds a newer lease.
   */
  over({ resources, owner }: Pick<Grant, "resources" | "owner">): void {
    if (this.#queues.size === 0) return;
    for (const resource of resources) {
      const queue = this.#queues.get(resource);
      if (queue === undefined || (queue.heldBy !== undefined && queue.heldBy !== owner)) continue;
      queue.heldBy = undefined;
      frontOf(queue)?.wake();
    }
  }
}

function newQueue(): LocalQueue {
  return {
    calls: new Map(),
    heldBy: undefined,
    sinceMs: 0,
    newestAtAttempt: 0,
    newestHeir: 0,
    holder: undefined,
    votes: undefined,
  };
}

function frontOf({ calls }: LocalQueue): QueuedCall | undefined {
  return calls.keys().next().value;
}
