import { asked } from "../asked.ts";
import { Deadline } from "./deadline.ts";
import { doubtCountOf, noteDoubt, raiseDoubt, settleDoubt, type SentRequest } from "./doubt.ts";
import { durationMs, type Duration } from "../time/durations.ts";
import { ClosedError, LeaseLostError, UnsupportedError, type LossReason } from "../errors.ts";
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
import { ttlMinMs } from "../options.ts";
import type { Instant } from "../ports.ts";
import type { Task } from "../time/scheduler.ts";
import type { ExtendOutcome, Grant, ProveOutcome, ReleaseOutcome } from "../store.ts";
import { now } from "../time/validity.ts";

const handedOver: ReleaseOutcome = { released: true, handedOver: true };

/**
 * Problem: replies can be late or lost, and a process can stop for longer than its lease lasts.
 * Idea: a state machine that local clocks end, never a reply. Every public read calls `judge`
 * first, so that a lease whose timer is late is never shown as held.
 * Limit: work that does not read the lease may run on after the loss. The fence covers that.
 * perf (held): the lease is its own deadline and scheduler task, which saves two objects.
 */
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
    const doubts = doubtCountOf(this.#extras);
    const outcome = await this.#host.store.prove(this.#grant);
    const error = this.#hear(outcome, doubts, now(this.#host.clock));
    if (error !== undefined && error !== this.#extras?.loss) throw error;
    return error === undefined;
  }

  async extend(ttl?: Duration): Promise<void> {
    const ttlMs =
      ttl === undefined
        ? this.ttlMs
        : durationMs("ttl", ttl, { minMs: ttlMinMs, maxMs: this.#host.maxTtlMs });
    this.assertHeld();
    const more = this.#more;
    const extend = (): Promise<void> => {
      this.assertHeld(); // Again: it may have been released while this call was queued.
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

  /** @internal True if a background renewal is under way, or queued behind an extension. */
  get isRenewing(): boolean {
    return this.#extras?.renewing === true;
  }

  /** @internal Renews in the background. perf (renew): usually no memory in the lease. */
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
    this.#host.renewals.add(this, this.#grant, started, doubtCountOf(this.#extras));
  }

  /** @internal Called with the outcome of a background renewal; undefined if it is unknown. */
  renewalHeard(outcome: ExtendOutcome | undefined, sent: SentRequest, moment: Instant): void {
    const isRenewed = outcome !== undefined && this.#extended(outcome, sent, moment) === undefined;
    this.#renewalOver(isRenewed, moment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Set if the manager was closed while the lease was held. */
  get closed(): ClosedError | undefined {
    return this.#extras?.closed;
  }

  /** @internal Called when the manager closes. Aborts the signal for work that still runs. */
  async close(): Promise<void> {
    this.judge();
    if (this.isActive) {
      const closed = new ClosedError(this.resources);
      this.#more.closed = closed;
      this.#more.controller?.abort(closed);
    }
    await this.release();
  }

  /** @internal Declares the loss if the validity is over. Every public read calls it first. */
  judge(moment?: Instant): void {
    if (!this.isActive) return;
    if (this.isOver(moment ?? now(this.#host.clock))) this.#lose();
  }

  /** @internal Ends the lease as lost if the store's `judge` returns a reason for its grant. */
  reconsider(judge: (grant: Grant) => LossReason | undefined): void {
    const reason = this.isActive ? judge(this.#grant) : undefined;
    if (reason !== undefined) this.#lose(reason);
  }

  /** @internal Turns doubtful if the store's `judge` returns a cause for the grant; true if so. */
  callIntoDoubt(judge: (grant: Grant) => Error | undefined): boolean {
    const cause = this.isActive ? judge(this.#grant) : undefined;
    if (cause === undefined) return false;
    raiseDoubt(this.#more, cause);
    this.#turnDoubtful(cause);
    return true;
  }

  run(moment: Instant): void {
    if (!this.isActive) return;
    if (this.isDue(moment)) this.#lose();
    else this.#host.reschedule(this, moment);
  }

  /** @internal True if held or doubtful: the lease can still be renewed, or lost. */
  get isActive(): boolean {
    return this.#state === "held" || this.#state === "doubtful";
  }

  async #extendNow(ttlMs: number): Promise<void> {
    const sent = { started: now(this.#host.clock), doubts: doubtCountOf(this.#extras) };
    const outcome = await this.#host.store.extend(this.#grant, ttlMs);
    const moment = now(this.#host.clock);
    const error = this.#extended(outcome, sent, moment);
    if (error !== undefined) throw error;
    this.#host.reschedule(this, moment);
  }

  #extended(outcome: ExtendOutcome, sent: SentRequest, moment: Instant): Error | undefined {
    const error = this.#hear(outcome, sent.doubts, moment);
    if (error !== undefined || outcome.kind !== "extended") return error;
    this.prolong(sent.started, outcome.validityMs);
    tellRenewed(this, this.#grant);
    return undefined;
  }

  /** Applies a reply to the state. Returns an error unless the reply confirms the lease in time. */
  #hear(outcome: ExtendOutcome | ProveOutcome, doubts: number, moment: Instant): Error | undefined {
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
    const error = settleDoubt(this.#extras, doubts, this.resources);
    if (error === undefined) this.#state = "held";
    return error;
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

  #lose(reason = this.whyOver(this.#state === "doubtful" ? "unreachable" : "expired")): void {
    const cause = this.#extras?.doubt?.cause;
    // Before `forget`, which may cancel an overdue timer: the sign of a stall under way.
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
    // perf (contended): before the release, so that the next call's attempt can travel with it.
    this.#host.over(this.#grant);
    return asked(() => this.#host.store.release(this.#grant)).then((reply) => {
      const reason = this.#extras?.loss?.reason ?? this.#endBefore(reply);
      const outcome = reason === undefined ? reply : { released: false as const, reason };
      tellReleased(this, outcome);
      return outcome;
    });
  }

  /** A release that arrived after the end finds nothing, and says nothing about the time before. */
  #endBefore(reply: ReleaseOutcome): LossReason | undefined {
    const isTaken = !reply.released && reply.reason === "taken";
    return isTaken && this.isOver(now(this.#host.clock)) ? "expired" : undefined;
  }
}

hearGuards(HeldLease.prototype);
showLeases(HeldLease.prototype);
