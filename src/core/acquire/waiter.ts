import type { AcquireContext, Acquisition } from "./acquisition.ts";
import type { Holder, Vote } from "../errors.ts";
import type { LocalQueues, Offer, QueuedCall, Refusal, Wanted } from "./local-queue.ts";
import type { Scheduler } from "../time/scheduler.ts";
import type { Grant, OpenStore, Waiting } from "../store.ts";

/** Limit for a single pause. A wait without an end consists of many pauses. */
const pauseMsMax = 60_000;

type WaitContext = Pick<AcquireContext, "scheduler" | "store" | "queues">;

/**
 * One call that waits: its entries in the manager's local queue and in the store's queue, and its
 * pauses. A call for several resources joins no local queue: there is one queue for each resource,
 * and the call might be first in one and last in another.
 */
export class Waiter implements QueuedCall {
  /** The call's wait in the store. Undefined if the store has no queue. */
  readonly store: Waiting | undefined;
  readonly #gaps: Pick<OpenStore, "gapRemainingMs">;
  readonly #scheduler: Scheduler;
  readonly #queues: LocalQueues;
  /** Resource whose local queue the call joined. Undefined if it joined none. */
  readonly #resource: string | undefined;
  readonly #call: Acquisition;
  #resume: (() => void) | undefined;
  /** True if `wake()` was called between two pauses. The next `pause()` then returns at once. */
  #woken = false;
  #offer: Offer | undefined;
  #leaving: Promise<void> | undefined;

  constructor({ scheduler, queues, store }: WaitContext, call: Acquisition) {
    this.#gaps = store;
    this.#scheduler = scheduler;
    this.#queues = queues;
    this.#call = call;
    const { resources } = call;
    this.#resource = resources.length === 1 ? resources[0] : undefined;
    // Joins the local queue before the wait in the store begins, because `join` throws if the local
    // queue is full.
    if (this.#resource !== undefined) queues.join(this.#resource, this);
    this.store = store.waiting?.(resources);
  }

  /** True if no other call of this manager comes first. */
  get isFirst(): boolean {
    return this.#resource === undefined || this.#queues.isFirst(this.#resource, this);
  }

  /**
   * True if the call may send an attempt: it is first in the local queue, and there is no gap. In a
   * gap the manager leaves the resources to clients of other libraries.
   */
  get maySend(): boolean {
    return this.isFirst && this.#gapRemainingMs === 0;
  }

  get #gapRemainingMs(): number {
    return this.#gaps.gapRemainingMs?.(this.#call.resources) ?? 0;
  }

  /**
   * Returns for how long to pause before `maySend` is checked again. 0 if the call may send an
   * attempt, or if its wait is over: it was cancelled, a lock was handed over, or `waitEndsMs` has
   * passed.
   */
  standByMs(waitEndsMs: number): number {
    const leftMs = waitEndsMs - this.#scheduler.clock.monotonicMs();
    if (this.#offer !== undefined || leftMs <= 0 || this.#call.cancelled) return 0;
    return this.isFirst ? Math.min(this.#gapRemainingMs, leftMs) : leftMs;
  }

  /** Returns the last holder that the call in front has seen; undefined without a local queue. */
  get holder(): Holder | undefined {
    return this.#resource === undefined ? undefined : this.#queues.holderOf(this.#resource);
  }

  /** Returns the votes of the last refusal that the call in front received. */
  get votes(): (() => readonly Vote[]) | undefined {
    return this.#resource === undefined ? undefined : this.#queues.votesOf(this.#resource);
  }

  wake(): void {
    const resume = this.#resume;
    if (resume === undefined) this.#woken = true;
    else resume();
  }

  /**
   * Returns the lock that a lease of this manager handed over to this call, which ends the wait.
   */
  get offer(): Offer | undefined {
    return this.#offer;
  }

  accepts({ ttlMs, label }: Wanted): boolean {
    const { options, cancelled } = this.#call;
    const isWaiting = this.#resume !== undefined && !cancelled;
    return isWaiting && options.ttlMs === ttlMs && options.label === label;
  }

  take(offer: Offer): void {
    this.#offer = offer;
    // An earlier attempt may have left an entry in the store's queue, which must not block others.
    void this.store?.leave();
    this.wake();
  }

  /**
   * Called before an attempt is sent. Clears earlier wake-ups, because this attempt answers them.
   */
  attemptBegins(): void {
    this.#woken = false;
    if (this.#resource !== undefined) this.#queues.attemptBegins(this.#resource);
  }

  refused(refusal: Refusal): void {
    if (this.#resource !== undefined) this.#queues.refused(this.#resource, refusal);
  }

  granted({ owner, fence }: Grant, label: string | undefined): void {
    const holder = {
      owner,
      ...(label === undefined ? {} : { label }),
      ...(fence === undefined ? {} : { fence }),
    };
    if (this.#resource === undefined) return;
    this.#queues.granted(this.#resource, this, holder, this.#scheduler.clock.monotonicMs());
  }

  /** Leaves both queues, once. Never rejects. */
  leave(): Promise<void> {
    this.#leaving ??= this.#leaveNow();
    return this.#leaving;
  }

  async #leaveNow(): Promise<void> {
    if (this.#resource !== undefined) this.#queues.leave(this.#resource, this);
    await this.store?.leave();
  }

  /**
   * Resolves after `ms`, or when woken or cancelled. If `isOpenToStore`, a notification from the
   * store ends the pause as well. A notification that came before the pause ends it at once.
   *
   * perf (contended): a pause uses one promise only. If a release wakes the call, its attempt is
   * then ready before the release is sent, and both share one script call.
   */
  pause(ms: number, isOpenToStore = true): Promise<void> {
    if (this.#call.cancelled || this.#woken) {
      this.#woken = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#resume = () => {
        this.#resume = undefined;
        this.#call.listen(undefined);
        this.store?.listen(undefined);
        this.#scheduler.cancel(task);
        resolve();
      };
      // This task keeps the process running, even during a wait without an end.
      const dueMs = this.#scheduler.clock.monotonicMs() + Math.min(ms, pauseMsMax);
      const task = this.#scheduler.at(dueMs, true, () => this.wake());
      this.#call.listen(() => this.wake());
      // Adds this listener last, because the store may call it at once.
      if (isOpenToStore) this.store?.listen(() => this.wake());
    });
  }
}

/**
 * Resolves when the gap is over or the call is cancelled. In the gap, clients of other libraries
 * may get the resources. A new call that joins no queue waits here before its first attempt.
 */
export async function leaveGap(
  { scheduler }: WaitContext,
  call: Acquisition,
  gapMs: number,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const resume = (): void => {
      call.listen(undefined);
      scheduler.cancel(task);
      resolve();
    };
    const task = scheduler.at(scheduler.clock.monotonicMs() + gapMs, true, resume);
    call.listen(resume);
  });
}
