import type { AcquireCall } from "./acquire-call.ts";
import type { Holder } from "./errors.ts";
import type { Offer } from "./hand-over.ts";
import type { LeaseTerms } from "./lease.ts";
import type { LineWaiter, Lines } from "./lines.ts";
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
  readonly #scheduler: Scheduler;
  readonly #lines: Lines;
  readonly #line: string | undefined;
  readonly #call: AcquireCall;
  #resume: (() => void) | undefined;
  /** Woken while nobody paused: the next pause is none. */
  #woken = false;
  #taken: Offer | undefined;

  constructor(context: WaitContext, call: AcquireCall) {
    const { scheduler, lines, store } = context;
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

  /** Somebody else's turn, and still time and a wish to wait for its own. */
  mustStandBy(leftMs: number): boolean {
    if (this.#taken !== undefined) return false;
    return leftMs > 0 && !this.#call.cancelled && !this.isItsTurn;
  }

  /** Who holds it, as far as anybody in the line knows. */
  get holder(): Holder | undefined {
    return this.#line === undefined ? undefined : this.#lines.holderOf(this.#line);
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
  }

  refused(holder: Holder | undefined): void {
    if (this.#line !== undefined) this.#lines.noticeHolder(this.#line, holder);
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

  /** Gives up both places. Never rejects. */
  async leave(): Promise<void> {
    if (this.#line !== undefined) this.#lines.leave(this.#line, this);
    await this.store?.leave();
  }

  /**
   * Resolves after `ms`, or when woken, told or cancelled. One promise and no more: whoever is
   * woken by a release has to ask in the very turn in which it is sent, to travel with it.
   */
  pause(ms: number): Promise<void> {
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
      this.store?.listen(() => this.wake());
    });
  }
}
