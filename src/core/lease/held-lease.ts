import {
  doubtCountOf,
  inTurn,
  onlyRenewing,
  ownActivity,
  settleDoubt,
  signalOf,
  stateOf,
  whyEnded,
  withoutRenewal,
  type Activity,
  type SentRequest,
} from "./activity.ts";
import { Deadline } from "./deadline.ts";
import { ClosedError, LeaseLostError, type LossReason } from "../errors.ts";
import {
  fenceOf,
  emitDoubtful,
  emitLost,
  emitReleased,
  emitRenewed,
  showLeases,
} from "./lease-report.ts";
import type { Lease, LeaseState, LeaseTerms } from "./lease.ts";
import { checkedTtl } from "../options.ts";
import { withCallerFrames } from "../report/caller-frames.ts";
import type { Instant } from "../ports.ts";
import type { ExtendOutcome, Grant, ProveOutcome, ReleaseOutcome } from "../store.ts";
import type { Duration } from "../time/durations.ts";

/**
 * Problem: replies can be late or lost, and a process can stop for longer than its lease lasts.
 * Idea: local clocks end the lease, even without any reply. Every public read checks the clocks
 * first, so that a lease whose timer is late is never reported as held.
 * Limit: work that does not read the lease may run on after the loss. Guards reject its fence.
 */
export class HeldLease implements Lease {
  // perf (held): methods are `private` and not #private, which would add a field to each lease.
  #grant: Grant;
  #activity: Activity | undefined;
  readonly #deadline: Deadline;

  constructor(terms: LeaseTerms, grant: Grant, started: Instant, validityMs: number) {
    this.#grant = grant;
    this.#deadline = new Deadline(this, terms, started, validityMs);
  }

  get terms(): LeaseTerms {
    return this.#deadline.terms;
  }
  /** Monotonic time from which the first validity counts. */
  get startedMs(): number {
    return this.#deadline.startedMs;
  }
  /** Error of the lease, if the manager was closed while the lease was held. */
  get closed(): ClosedError | undefined {
    return this.#activity?.closed;
  }
  /** True if held or doubtful: the lease can still be renewed, or lost. */
  get isActive(): boolean {
    const state = this.#activity === undefined ? "held" : stateOf(this.#activity);
    return state === "held" || state === "doubtful";
  }
  private get own(): Activity {
    this.#activity = ownActivity(this.#activity);
    return this.#activity;
  }
  get resources(): readonly string[] {
    return this.#grant.resources;
  }
  get label(): string | undefined {
    return this.terms.label;
  }
  get fence(): bigint {
    return fenceOf(this.#grant);
  }
  get state(): LeaseState {
    this.judge();
    return stateOf(this.#activity);
  }
  get signal(): AbortSignal {
    return signalOf(this.own, this);
  }

  remainingMs(): number {
    const moment = this.terms.host.clock.now();
    this.judge(moment);
    return this.isActive ? Math.floor(this.#deadline.leftMs(moment)) : 0;
  }

  assertHeld(): void {
    this.judge();
    const error = whyEnded(this.#activity, this);
    if (error !== undefined) throw error;
  }

  async prove(): Promise<boolean> {
    this.judge();
    if (this.#activity?.loss !== undefined) return false;
    this.assertHeld();
    const doubts = doubtCountOf(this.#activity);
    const outcome = await this.terms.host.store.prove(this.#grant);
    const error = this.apply(outcome, doubts, this.terms.host.clock.now());
    if (error !== undefined && error !== this.#activity?.loss) await withCallerFrames(error);
    return error === undefined;
  }

  async extend(ttl?: Duration): Promise<void> {
    const ttlMs = ttl === undefined ? this.terms.ttlMs : checkedTtl(ttl, this.terms.host.maxTtlMs);
    this.assertHeld();
    const activity = this.own;
    const extend = (): Promise<void> => {
      this.assertHeld(); // Again: a release may have come while this call was queued.
      return this.extendNow(ttlMs);
    };
    await inTurn(activity, extend, () => {
      if (this.#activity === activity) this.#activity = undefined;
    });
  }

  release(): Promise<ReleaseOutcome> {
    const activity = this.own;
    activity.releasing ??= this.releaseNow(activity);
    return activity.releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Called when the manager closes. Aborts the signal for work that still runs. */
  async close(): Promise<void> {
    this.judge();
    if (this.isActive) {
      const closed = new ClosedError(this.resources);
      this.own.closed = closed;
      this.own.controller?.abort(closed);
    }
    await this.release();
  }

  /** Ends the lease as lost if its validity is over. Every public read calls this first. */
  judge(moment?: Instant): void {
    if (!this.isActive) return;
    if (this.#deadline.isOver(moment ?? this.terms.host.clock.now())) this.lose();
  }

  /** Ends the lease as lost if `judge`, a check of one grant by the store, returns a reason. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    const reason = this.isActive ? judge(this.#grant) : undefined;
    if (reason !== undefined) this.lose(reason);
  }

  /** Makes the lease doubtful, and proves it, if `judge`, a check by the store, returns a cause. */
  callIntoDoubt(judge: (grant: Grant) => Error | undefined): void {
    const cause = this.isActive ? judge(this.#grant) : undefined;
    if (cause === undefined) return;
    // Only a request that is sent from now on can confirm the lease.
    this.own.doubtCount += 1;
    this.turnDoubtful(cause);
    this.terms.host.doubts.resolve(this);
  }

  /** Starts the renewal if it is due at `moment`, and schedules the next renewal or the end. */
  schedule(moment: Instant): void {
    if (!this.isActive) return;
    if (this.#deadline.isRenewalDue(moment) && !this.isRenewing) {
      this.judge(moment);
      if (this.isActive) this.renew(moment);
    }
    if (this.isActive) this.#deadline.schedule(this.isRenewing, moment);
  }

  /** True if a background renewal is under way, or queued behind an extension. */
  private get isRenewing(): boolean {
    return this.#activity?.renewing === true;
  }

  /** Renews in the background. perf (renew): usually the lease needs no memory for that. */
  private renew(started: Instant): void {
    if (this.#activity === undefined) this.#activity = onlyRenewing;
    else this.own.renewing = true;
    if (this.#activity.extending !== undefined) {
      const { clock } = this.terms.host;
      const over = (isRenewed: boolean) => () => this.renewalOver(isRenewed, clock.now());
      this.extend().then(over(true), over(false));
      return;
    }
    const doubts = doubtCountOf(this.#activity);
    this.terms.host.renewals.add({ lease: this, grant: this.#grant, started, doubts });
  }

  /** Called with the outcome of a background renewal; undefined if it is unknown. */
  onRenewal(outcome: ExtendOutcome | undefined, sent: SentRequest, moment: Instant): void {
    const isRenewed = outcome !== undefined && this.extended(outcome, sent, moment) === undefined;
    this.renewalOver(isRenewed, moment);
  }

  private renewalOver(isRenewed: boolean, moment: Instant): void {
    this.#activity = withoutRenewal(this.#activity);
    if (!isRenewed) this.#deadline.retryRenewal(moment);
    this.schedule(moment);
  }

  private async extendNow(ttlMs: number): Promise<void> {
    const { clock, store } = this.terms.host;
    const sent = { started: clock.now(), doubts: doubtCountOf(this.#activity) };
    const outcome = await store.extend(this.#grant, ttlMs);
    const moment = clock.now();
    const error = this.extended(outcome, sent, moment);
    if (error !== undefined) throw error;
    this.schedule(moment);
  }

  private extended(outcome: ExtendOutcome, sent: SentRequest, moment: Instant): Error | undefined {
    const error = this.apply(outcome, sent.doubts, moment);
    if (error !== undefined || outcome.kind !== "extended") return error;
    this.#deadline.prolong(sent.started, outcome.validityMs);
    emitRenewed(this, this.#grant);
    return undefined;
  }

  /** Applies a reply to the state. Returns an error unless the reply confirms the lease in time. */
  private apply(
    reply: ExtendOutcome | ProveOutcome,
    doubts: number,
    moment: Instant,
  ): Error | undefined {
    // Judged by the old validity first: a reply that comes after it proves nothing.
    this.judge(moment);
    if (!this.isActive) return whyEnded(this.#activity, this);
    if (reply.kind === "gone") {
      this.lose("taken");
      return whyEnded(this.#activity, this);
    }
    if (reply.kind === "failed") {
      this.turnDoubtful(reply.error);
      return reply.error;
    }
    return settleDoubt(this.#activity, doubts, this.resources);
  }

  private turnDoubtful(cause: unknown): void {
    const isNew = stateOf(this.#activity) === "held";
    this.own.doubt = { cause };
    if (isNew) emitDoubtful(this, cause);
  }

  /** Stops renewals, the timer for the end, and the calls of `prove()` that a doubt has started. */
  private end(): void {
    if (doubtCountOf(this.#activity) > 0) this.terms.host.doubts.forget(this);
    this.#deadline.cancel();
  }

  lose(reason: LossReason = this.#deadline.whyOver(this.#activity?.doubt !== undefined)): void {
    const cause = this.#activity?.doubt?.cause;
    // Reads the stalls before the deadline is cancelled: its overdue timer shows a stall under way.
    const stalls = this.#deadline.stalls();
    const loss = new LeaseLostError(this.resources, reason, { cause });
    const activity = this.own;
    activity.loss = loss;
    this.end();
    this.terms.host.queues.over(this.#grant);
    activity.controller?.abort(loss);
    emitLost(this, { fence: this.#grant.fence, reason, cause, ...stalls });
  }

  private async releaseNow(activity: Activity): Promise<ReleaseOutcome> {
    const { clock, events, queues, store } = this.terms.host;
    const moment = clock.now();
    this.judge(moment);
    const isQuiet = !activity.renewing && activity.extending === undefined;
    const leftMs = this.#deadline.leftForNextMs(moment);
    const kept =
      stateOf(activity) === "held" && isQuiet
        ? queues.handOver(store, this.#grant, this.terms, moment, leftMs)
        : undefined;
    if (this.isActive) activity.isReleased = true;
    if (kept !== undefined) {
      this.end();
      const handedOver = { released: true, handedOver: true } as const;
      this.#grant = kept;
      if (events.wants("released")) emitReleased(this, handedOver);
      return handedOver;
    }
    // perf (contended): wakes the next call first, so that its attempt is sent with the release.
    queues.over(this.#grant);
    const reply = await store.release(this.#grant);
    this.end(); // Only now: until then the keeper knows the lease, and `close` waits for it.
    // A late release finds no lock, because its keys have expired: the reason is then not `taken`.
    const isTaken = !reply.released && reply.reason === "taken";
    const isLate = isTaken && this.#deadline.isOver(clock.now());
    const reason = activity.loss?.reason ?? (isLate ? "expired" : undefined);
    const outcome = reason === undefined ? reply : { released: false as const, reason };
    if (events.wants("released")) emitReleased(this, outcome);
    return outcome;
  }
}

showLeases(HeldLease.prototype);
