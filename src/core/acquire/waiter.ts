import type { AcquireContext, Acquisition } from "./acquisition.ts";
import type { Holder, Vote } from "../errors.ts";
import type { LocalQueues, Offer, QueuedCall, Refusal, Wanted } from "./local-queue.ts";
import type { Scheduler } from "../time/scheduler.ts";
import type { Grant, OpenStore, Waiting } from "../store.ts";

/** Longest single pause, for waits without an end. */
const pauseMsMax = 60_000;

type WaitContext = Pick<AcquireContext, "scheduler" | "store" | "queues">;

/**
 * One call that waits: its entries in the manager's local queue and in the store's queue, and its
 * pauses. A call for several resources joins no local queue: its order would depend on all of them.
 */
export class Waiter implements QueuedCall {
  /** The store's side of the wait; undefined if the store has none. */
  readonly store: Waiting | undefined;
  readonly #gaps: Pick<OpenStore, "gapRemainingMs">;
  readonly #scheduler: Scheduler;
  readonly #queues: LocalQueues;
  /** Resource of its local queue; undefined if it is in none. */
  readonly #resource: string | undefined;
  readonly #call: Acquisition;
  #resume: (() => void) | undefined;
  /** Set if `wake()` came between two pauses; the next `pause()` returns at once. */
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
    // First, because a full queue throws. Then the wait in the store is not begun.
    if (this.#resource !== undefined) queues.join(this.#resource, this);
    this.store = store.waiting?.(resources);
  }

  /** True if no other call of this manager comes first. */
  get isFirst(): boolean {
    return this.#resource === undefined || this.#queues.isFirst(this.#resource, this);
  }

  /** True if it may send an attempt: it is first in the local queue, and no gap is open. */
  get maySend(): boolean {
    return this.isFirst && this.#gapRemainingMs === 0;
  }

  get #gapRemainingMs(): number {
    return this.#gaps.gapRemainingMs?.(this.#call.resources) ?? 0;
  }

  /**
   * Returns for how long to pause before `maySend` is checked again. 0 if it may send an attempt,
   * or if the wait is over: lock handed over, cancelled, or `waitEndsMs` has passed.
   */
  standByMs(waitEndsMs: number): number {
    const leftMs = waitEndsMs - this.#scheduler.clock.monotonicMs();
    if (this.#offer !== undefined || leftMs <= 0 || this.#call.cancelled) return 0;
    return this.isFirst ? Math.min(this.#gapRemainingMs, leftMs) : leftMs;
  }

  /** Returns the last holder that is known in the local queue. */
  get holder(): Holder | undefined {
    return this.#resource === undefined ? undefined : this.#queues.holderOf(this.#resource);
  }

  /** Returns the votes in the last refusal of the call in front. */
  get votes(): (() => readonly Vote[]) | undefined {
    return this.#resource === undefined ? undefined : this.#queues.votesOf(this.#resource);
  }

  wake(): void {
    const resume = this.#resume;
    if (resume === undefined) this.#woken = true;
    else resume();
  }

  /** Returns the lock that the previous holder handed over, which ends the wait. */
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
    // An earlier attempt may have left an entry in the store's queue.
    void this.store?.leave();
    this.wake();
  }

  /** Called before an attempt is sent: earlier wake-ups are no reason for another attempt. */
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
   * Resolves after `ms`, or when woken or cancelled. With `isOpenToStore` a notification from the
   * store ends the pause as well, at once if it came before.
   *
   * perf (contended): one promise only. The attempt of a call that is woken by a release is then
   * ready before the release is sent, and shares its script call.
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
      // Keeps the process running, also for a wait without an end.
      const dueMs = this.#scheduler.clock.monotonicMs() + Math.min(ms, pauseMsMax);
      const task = this.#scheduler.at(dueMs, true, () => this.wake());
      this.#call.listen(() => this.wake());
      // Last, because the store may call the listener at once.
      if (isOpenToStore) this.store?.listen(() => this.wake());
    });
  }
}

/**
 * Resolves when the gap is over or the call is cancelled. In the gap, clients of other libraries
 * may get the resources. A new call that waits behind no other waits for its end first.
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
