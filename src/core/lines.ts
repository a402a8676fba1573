import { TooManyWaitersError, type Holder } from "./errors.ts";
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

/** The waiters of one resource, in the order they came. */
interface Line {
  readonly waiters: Set<LineWaiter>;
  /** The owner of a lease of ours that was granted it: nobody needs to ask before that is over. */
  heldBy: string | undefined;
  /** When the store granted it to one of ours; passing it on does not count. */
  sinceMs: number;
  /** Who had it when somebody of ours asked last. */
  holder: Holder | undefined;
}

/**
 * Those of one manager who wait for the same resource: one of them contends with the rest of the
 * world, the others stand behind it and send nothing. There is a line only while somebody waits.
 */
export class Lines {
  readonly #lines = new Map<string, Line>();

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
      line = { waiters: new Set(), heldBy: undefined, sinceMs: 0, holder: undefined };
      this.#lines.set(resource, line);
    }
    if (line.waiters.size >= waitersMax) throw new TooManyWaitersError([resource], waitersMax);
    line.waiters.add(waiter);
  }

  /** Whether `waiter` is the one that contends. */
  isTurnOf(resource: string, waiter: LineWaiter): boolean {
    const line = this.#lines.get(resource);
    return line !== undefined && line.heldBy === undefined && frontOf(line) === waiter;
  }

  holderOf(resource: string): Holder | undefined {
    return this.#lines.get(resource)?.holder;
  }

  /** For those behind, who ask nobody themselves. */
  noticeHolder(resource: string, holder: Holder | undefined): void {
    const line = this.#lines.get(resource);
    if (line !== undefined) line.holder = holder;
  }

  /** `waiter` was granted it: the next one waits for the end of that lease. */
  granted(resource: string, waiter: LineWaiter, holder: Holder, nowMs: number): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.waiters.delete(waiter);
    line.heldBy = holder.owner;
    line.sinceMs = nowMs;
    line.holder = holder;
    if (line.waiters.size === 0) this.#lines.delete(resource);
  }

  /** The next one, while a lease of `owner` has it and the turn of this manager is not over. */
  successorOf(resource: string, owner: string, nowMs: number): LineWaiter | undefined {
    const line = this.#lines.get(resource);
    if (line?.heldBy !== owner || nowMs - line.sinceMs >= turnMsMax) return undefined;
    return frontOf(line);
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

function frontOf({ waiters }: Line): LineWaiter | undefined {
  return waiters.values().next().value;
}
