import type { AcquireCall } from "./acquire-call.ts";
import type { Holder, Vote } from "../errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "../lease/lease.ts";
import type { LineWaiter, Lines, Refusal } from "./lines.ts";
import type { Scheduler } from "../time/scheduler.ts";
import type { Grant, OpenStore, Waiting } from "../store.ts";

/** Longest single pause, for waits without an end. */
const pauseMsMax = 60_000;

interface WaitContext {
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
  readonly lines: Lines;
}

/**
 * One call that waits: its entries in the manager's local queue (`lines.ts`) and in the store's
 * queue, and its pauses. A call for several resources joins no local queue: its order would depend
 * on all of them.
 */
export class Wait implements LineWaiter {
  /** The store's side of the wait; undefined if the store has none. */
  readonly store: Waiting | undefined;
  readonly #gaps: Pick<OpenStore, "gapRemainingMs">;
  readonly #scheduler: Scheduler;
  readonly #lines: Lines;
  readonly #line: string | undefined;
  readonly #call: AcquireCall;
  #resume: (() => void) | undefined;
  /** Set if `wake()` came between two pauses; the next `pause()` returns at once. */
  #woken = false;
  #taken: Offer | undefined;
  #leaving: Promise<void> | undefined;

  constructor(context: WaitContext, call: AcquireCall) {
    const { scheduler, lines, store } = context;
    this.#gaps = store;
    this.#scheduler = scheduler;
    this.#lines = lines;
    this.#call = call;
    const { resources } = call;
    this.#line = resources.length === 1 ? resources[0] : undefined;
    // First, because a full queue throws. Then the wait in the store is not begun.
    if (this.#line !== undefined) lines.join(this.#line, this);
    this.store = store.waiting?.(resources);
  }

  /** True if no other call of this manager comes first. */
  get isItsTurn(): boolean {
    return this.#line === undefined || this.#lines.isTurnOf(this.#line, this);
  }

  /** True if it may send an attempt: it is first in the local queue, and no gap is open. */
  get mayAsk(): boolean {
    return this.isItsTurn && this.#gapRemainingMs === 0;
  }

  get #gapRemainingMs(): number {
    return this.#gaps.gapRemainingMs?.(this.#call.resources) ?? 0;
  }

  /**
   * Returns for how long to pause before `mayAsk` is checked again, at most `leftMs`. 0 if it may
   * send an attempt, or if the wait is over: lock handed over, cancelled, or no time left.
   */
  standByMs(leftMs: number): number {
    if (this.#taken !== undefined || leftMs <= 0 || this.#call.cancelled) return 0;
    return this.isItsTurn ? Math.min(this.#gapRemainingMs, leftMs) : leftMs;
  }

  /** Returns the last holder that is known in the local queue. */
  get holder(): Holder | undefined {
    return this.#line === undefined ? undefined : this.#lines.holderOf(this.#line);
  }

  /** Returns the votes in the last refusal of the call in front. */
  get votes(): (() => readonly Vote[]) | undefined {
    return this.#line === undefined ? undefined : this.#lines.votesOf(this.#line);
  }

  wake(): void {
    const resume = this.#resume;
    if (resume === undefined) this.#woken = true;
    else resume();
  }

  /** Returns the lock that the previous holder handed over, which ends the wait. */
  get taken(): Offer | undefined {
    return this.#taken;
  }

  wouldTake({ ttlMs, label }: Pick<LeaseTerms, "ttlMs" | "label">): boolean {
    const { options, cancelled } = this.#call;
    const isWaiting = this.#resume !== undefined && !cancelled;
    return isWaiting && options.ttlMs === ttlMs && options.label === label;
  }

  take(offer: Offer): void {
    this.#taken = offer;
    // An earlier attempt may have left an entry in the store's queue.
    void this.store?.leave();
    this.wake();
  }

  /** Called before an attempt is sent: earlier wake-ups are no reason for another attempt. */
  attemptBegins(): void {
    this.#woken = false;
    if (this.#line !== undefined) this.#lines.asks(this.#line);
  }

  refused(refusal: Refusal): void {
    if (this.#line !== undefined) this.#lines.noticeRefusal(this.#line, refusal);
  }

  granted({ owner, fence }: Grant, label: string | undefined): void {
    const holder = {
      owner,
      ...(label === undefined ? {} : { label }),
      ...(fence === undefined ? {} : { fence }),
    };
    if (this.#line === undefined) return;
    this.#lines.granted(this.#line, this, holder, this.#scheduler.clock.monotonicMs());
  }

  /** Leaves both queues, once. Never rejects. */
  leave(): Promise<void> {
    this.#leaving ??= this.#leaveNow();
    return this.#leaving;
  }

  async #leaveNow(): Promise<void> {
    if (this.#line !== undefined) this.#lines.leave(this.#line, this);
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
