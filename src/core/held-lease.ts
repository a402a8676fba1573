import { asked } from "./asked.ts";
import { Deadline } from "./deadline.ts";
import { noteDoubt, raiseDoubt, raisedOf, settleDoubt } from "./doubt.ts";
import { durationMs, type Duration } from "./durations.ts";
import { ClosedError, LeaseLostError, UnsupportedError, type LossReason } from "./errors.ts";
import { hearGuards, tellDoubtful, tellLost, tellReleased, tellRenewed } from "./lease-events.ts";
import {
  inTurn,
  isQuiet,
  onlyRenewing,
  ownExtras,
  whyEnded,
  withoutRenewal,
  type LeaseExtras,
} from "./lease-extras.ts";
import type { LeaseHost } from "./lease-host.ts";
import { signalOf } from "./lease-signal.ts";
import { showLeases } from "./lease-view.ts";
import type { Lease, LeaseState, LeaseTerms } from "./lease.ts";
import { ttlMinMs } from "./options.ts";
import type { Instant } from "./ports.ts";
import type { Task } from "./scheduler.ts";
import type { ExtendOutcome, Grant, ProveOutcome, ReleaseOutcome } from "./store.ts";
import { now } from "./validity.ts";

const handedOver: ReleaseOutcome = { released: true, handedOver: true };

/** The state machine of one lease; also its own deadline, and its own task in the scheduler. */
export class HeldLease extends Deadline implements Lease, Task {
  #grant: Grant;
  #state: LeaseState = "held";
  #extras: LeaseExtras | undefined;

  constructor(
    terms: LeaseTerms,
    grant: Grant,
    started: Instant,
    validityMs: number = grant.validityMs,
  ) {
    super(terms, started, validityMs);
    this.#grant = grant;
  }

  get #host(): LeaseHost {
    return this.terms.host;
  }

  get #more(): LeaseExtras {
    this.#extras = ownExtras(this.#extras);
    return this.#extras;
  }

  get resources(): readonly string[] {
    return this.#grant.resources;
  }

  get fence(): bigint {
    const { fence } = this.#grant;
    if (fence !== undefined) return fence;
    throw new UnsupportedError("this store does not fence its leases: there is no fence to use", {
      resources: this.resources,
    });
  }

  get state(): LeaseState {
    this.judge();
    return this.#state;
  }

  get signal(): AbortSignal {
    return signalOf(this.#more, this);
  }

  remainingMs(): number {
    const moment = now(this.#host.clock);
    this.judge(moment);
    return this.isActive ? Math.floor(this.leftMs(moment)) : 0;
  }

  assertHeld(): void {
    this.judge();
    const error = this.#whyEnded();
    if (error !== undefined) throw error;
  }

  async prove(): Promise<boolean> {
    this.judge();
    if (this.#extras?.loss !== undefined) return false;
    this.assertHeld();
    const raised = raisedOf(this.#extras);
    const outcome = await this.#host.store.prove(this.#grant);
    const error = this.#hear(outcome, raised, now(this.#host.clock));
    if (error !== undefined && error !== this.#extras?.loss) throw error;
    return error === undefined;
  }

  async extend(ttl?: Duration): Promise<void> {
    const ttlMs =
      ttl === undefined
        ? this.ttlMs
        : durationMs("ttl", ttl, { minMs: ttlMinMs, maxMs: this.#host.ttlMaxMs });
    this.assertHeld();
    const more = this.#more;
    const extend = (): Promise<void> => {
      // It may have been released while this call stood in line.
      this.assertHeld();
      return this.#extendNow(ttlMs);
    };
    await inTurn(more, extend, () => {
      if (this.#extras === more) this.#extras = undefined;
    });
  }

  release(): Promise<ReleaseOutcome> {
    const more = this.#more;
    more.releasing ??= this.#releaseNow();
    return more.releasing;
  }

  /** @internal Whether one is under way in the background, or stands in the line. */
  get isRenewing(): boolean {
    return this.#extras?.renewing === true;
  }

  /** @internal Renews it in the background: usually one question to the store, and no memory. */
  renew(started: Instant): void {
    this.judge(started);
    if (!this.isActive) return;
    if (this.#extras === undefined) this.#extras = onlyRenewing;
    else this.#more.renewing = true;
    if (this.#extras.extending !== undefined) {
      this.extend().then(
        () => this.#renewalOver(true),
        () => this.#renewalOver(false),
      );
      return;
    }
    this.#host.renewals.add(this, this.#grant, started, raisedOf(this.#extras));
  }

  /** @internal What came of a renewal that began then; undefined where nobody can say. */
  renewalHeard(
    outcome: ExtendOutcome | undefined,
    started: Instant,
    raised: number,
    moment: Instant,
  ): void {
    const isRenewed =
      outcome !== undefined && this.#extended(outcome, started, raised, moment) === undefined;
    this.#renewalOver(isRenewed, moment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Why it was given back under its holder's hands, if the manager was closed. */
  get closed(): ClosedError | undefined {
    return this.#extras?.closed;
  }

  /** @internal The manager closes: work that still runs must learn that its lease is gone. */
  async close(): Promise<void> {
    this.judge();
    if (this.isActive) {
      const closed = new ClosedError(this.resources);
      this.#more.closed = closed;
      this.#more.controller?.abort(closed);
    }
    await this.release();
  }

  /** @internal Declares the loss if it is time. Every public look at the lease starts here. */
  judge(moment?: Instant): void {
    if (!this.isActive) return;
    if (this.isOver(moment ?? now(this.#host.clock))) this.#lose();
  }

  /** @internal The store doubts its own grants, and says which are lost. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    const reason = this.isActive ? judge(this.#grant) : undefined;
    if (reason !== undefined) this.#lose(reason);
  }

  /** @internal The store no longer knows, and says of which; true where this one is among them. */
  callIntoDoubt(judge: (grant: Grant) => Error | undefined): boolean {
    const cause = this.isActive ? judge(this.#grant) : undefined;
    if (cause === undefined) return false;
    raiseDoubt(this.#more, cause);
    this.#turnDoubtful(cause);
    return true;
  }

  /** Run by the scheduler for a renewal that is due, and for the end. */
  run(moment: Instant): void {
    if (!this.isActive) return;
    if (this.isDue(moment)) this.#lose();
    else this.#host.reschedule(this, moment);
  }

  /** @internal Held, as far as is known: to be renewed, and to be ended in time. */
  get isActive(): boolean {
    return this.#state === "held" || this.#state === "doubtful";
  }

  async #extendNow(ttlMs: number): Promise<void> {
    const started = now(this.#host.clock);
    const raised = raisedOf(this.#extras);
    const outcome = await this.#host.store.extend(this.#grant, ttlMs);
    const moment = now(this.#host.clock);
    const error = this.#extended(outcome, started, raised, moment);
    if (error !== undefined) throw error;
    this.#host.reschedule(this, moment);
  }

  #extended(
    outcome: ExtendOutcome,
    started: Instant,
    raised: number,
    moment: Instant,
  ): Error | undefined {
    const error = this.#hear(outcome, raised, moment);
    if (error !== undefined || outcome.kind !== "extended") return error;
    this.prolong(started, outcome.validityMs);
    tellRenewed(this, this.#grant);
    return undefined;
  }

  /** What the store's answer to a question changes; an error where it is not a yes in time. */
  #hear(outcome: ExtendOutcome | ProveOutcome, raised: number, moment: Instant): Error | undefined {
    // Judged by the old validity first: a reply that comes after it proves nothing.
    this.judge(moment);
    if (!this.isActive) return this.#whyEnded();
    if (outcome.kind === "gone") {
      this.#lose("taken");
      return this.#whyEnded();
    }
    if (outcome.kind === "failed") {
      this.#turnDoubtful(outcome.error);
      return outcome.error;
    }
    if (settleDoubt(this.#extras, raised)) this.#state = "held";
    return undefined;
  }

  #renewalOver(isRenewed: boolean, moment = now(this.#host.clock)): void {
    this.#extras = withoutRenewal(this.#extras);
    this.#host.renewed(this, isRenewed, moment);
  }

  #whyEnded(): Error | undefined {
    return whyEnded(this.#extras, this.#state, this);
  }

  #turnDoubtful(cause: unknown): void {
    noteDoubt(this.#more, cause);
    if (this.#state !== "held") return;
    this.#state = "doubtful";
    tellDoubtful(this, cause);
  }

  /** Its time has run out, unless there is another reason. */
  #lose(reason = this.whyOver(this.#state === "doubtful" ? "unreachable" : "expired")): void {
    const cause = this.#extras?.doubt?.cause;
    // Asked first: an overdue timer, which tells of a stall under way, is about to be cancelled.
    const stalls = this.#host.stalls(this.started);
    this.#state = "lost";
    const loss = new LeaseLostError(this.resources, reason, { cause });
    this.#more.loss = loss;
    this.#host.forget(this);
    this.#host.over(this.#grant);
    this.#more.controller?.abort(loss);
    tellLost(this, this.#grant.fence, reason, cause, stalls);
  }

  #releaseNow(): Promise<ReleaseOutcome> {
    this.judge();
    const isWell = this.#state === "held" && isQuiet(this.#extras);
    const spent = isWell ? this.#host.handOver(this, this.#grant) : undefined;
    if (this.isActive) this.#state = "released";
    this.#host.forget(this);
    if (spent !== undefined) {
      this.#grant = spent;
      tellReleased(this, handedOver);
      return Promise.resolve(handedOver);
    }
    // First, so that the next one's question travels with the release.
    this.#host.over(this.#grant);
    return asked(() => this.#host.store.release(this.#grant)).then((told) => {
      // A lease that was lost is not released, even where its keys were still there to be deleted.
      const loss = this.#extras?.loss;
      const outcome = loss === undefined ? told : { released: false as const, reason: loss.reason };
      tellReleased(this, outcome);
      return outcome;
    });
  }
}

hearGuards(HeldLease.prototype);
showLeases(HeldLease.prototype);
