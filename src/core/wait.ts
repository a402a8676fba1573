import type { AcquireCall } from "./acquire-call.ts";
import type { Holder, Vote } from "./errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "./lease.ts";
import type { LineWaiter, Lines, Refusal } from "./lines.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Grant, OpenStore, Waiting } from "./store.ts";

const pauseMsMax = 60_000;

interface WaitContext {
  readonly scheduler: Scheduler;
  readonly store: OpenStore;
  readonly lines: Lines;
}

/**
 * One call that waits: its place in the manager's own line and in the store's queue, and its
 * pauses. Several resources at once stand in no line: their order would depend on all of them.
 */
export class Wait implements LineWaiter {
  /** The store's side of it; undefined where the store has none. */
  readonly store: Waiting | undefined;
  readonly #gaps: Pick<OpenStore, "gapLeftMs">;
  readonly #scheduler: Scheduler;
  readonly #lines: Lines;
  readonly #line: string | undefined;
  readonly #call: AcquireCall;
  #resume: (() => void) | undefined;
  /** Woken while nobody paused: the next pause is none. */
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
    // Before anything is drawn or opened for it: a line that is full refuses.
    if (this.#line !== undefined) lines.join(this.#line, this);
    this.store = store.waiting?.(resources);
  }

  /** Nobody of the same manager comes before it. */
  get isItsTurn(): boolean {
    return this.#line === undefined || this.#lines.isTurnOf(this.#line, this);
  }

  /** True if it may send an attempt: it is first in this manager's line, and no gap is open. */
  get mayAsk(): boolean {
    return this.isItsTurn && this.#gapLeftMs === 0;
  }

  get #gapLeftMs(): number {
    return this.#gaps.gapLeftMs?.(this.#call.resources) ?? 0;
  }

  /**
   * For how long to pause before it looks again whether it may ask, at most `leftMs`; 0 if it may,
   * if there is nothing left to wait for, or no time.
   */
  standByMs(leftMs: number): number {
    if (this.#taken !== undefined || leftMs <= 0 || this.#call.cancelled) return 0;
    return this.isItsTurn ? Math.min(this.#gapLeftMs, leftMs) : leftMs;
  }

  /** Who holds it, as far as anybody in the line knows. */
  get holder(): Holder | undefined {
    return this.#line === undefined ? undefined : this.#lines.holderOf(this.#line);
  }

  /** How the nodes answered the last attempt of the call in front, where they refused it. */
  get votes(): (() => readonly Vote[]) | undefined {
    return this.#line === undefined ? undefined : this.#lines.votesOf(this.#line);
  }

  wake(): void {
    const resume = this.#resume;
    if (resume === undefined) this.#woken = true;
    else resume();
  }

  /** What was passed on to it by the holder before it: there is nothing to wait for any more. */
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
    // It may have asked before, and have a place that nobody needs now.
    void this.store?.leave();
    this.wake();
  }

  /** From here on only what happens after the attempt began is a reason for another. */
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

  /** Gives up both places, once. Never rejects. */
  leave(): Promise<void> {
    this.#leaving ??= this.#leaveNow();
    return this.#leaving;
  }

  async #leaveNow(): Promise<void> {
    if (this.#line !== undefined) this.#lines.leave(this.#line, this);
    await this.store?.leave();
  }

  /**
   * Resolves after `ms`, or when woken or cancelled. With `isOpenToStore` a wake-up from the store
   * ends it as well; one that has come already ends it at once. One promise and no more: a call
   * that is woken by a release has to ask in the very turn in which it is sent, to travel with it.
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
      // Also for a wait without an end: somebody waits, so the process goes on.
      const dueMs = this.#scheduler.clock.monotonicMs() + Math.min(ms, pauseMsMax);
      const task = this.#scheduler.at(dueMs, true, () => this.wake());
      this.#call.listen(() => this.wake());
      // Last, for it may call at once.
      if (isOpenToStore) this.store?.listen(() => this.wake());
    });
  }
}
