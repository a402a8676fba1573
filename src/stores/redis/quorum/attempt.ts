import type { Holder } from "../../../core/errors.ts";
import type { AcquireRequest, AttemptOutcome } from "../../../core/store.ts";
import { leftMs } from "../../../core/validity.ts";
import { placeLeft, type Place } from "../dialect.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeReply } from "../node-reply.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { AcquireReply, TouchReply } from "../replies.ts";
import {
  confirmedBits,
  confirmedOf,
  countOf,
  dropStepped,
  isGrantOf,
  newBallot,
  noteGrant,
  withoutOurs,
  type Ballot,
} from "./ballot.ts";
import { RedisGrant, type GrantTerms } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import { refusedOutcome } from "./refused-outcome.ts";
import { releaseAll, releaseOn } from "./release.ts";
import { Round } from "./round.ts";

/**
 * One attempt to be granted by a quorum: the acquire round, a second question to nodes whose answer
 * was lost, and the raise round where the granted fences differ. Decided as soon as the outcome is
 * certain; answers that come later are absorbed, and a grant among them is given back.
 */
export function attempt(
  quorum: Quorum,
  request: AcquireRequest,
  keys: readonly string[],
  place?: Place,
): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(quorum, request, keys, place, resolve).start());
}

class Attempt {
  readonly #quorum: Quorum;
  readonly #request: AcquireRequest;
  readonly #keys: readonly string[];
  readonly #place: Place | undefined;
  readonly #resolve: (outcome: AttemptOutcome) => void;
  readonly #ballots: Ballot[];
  readonly #rounds: { readonly spared: number; end(): void }[] = [];
  readonly #terms: GrantTerms;
  /** The same for every node and every repeat, so that a repeat is recognised as our own. */
  readonly #acquireCall: NodeCall<AcquireReply>;
  #phase: "granting" | "raising" | "granted" | "failed" = "granting";
  /** The greatest fence granted, once a quorum has granted. */
  #fence = 0;
  #holder: Holder | undefined;
  #raised = false;
  #grant: RedisGrant | undefined;

  constructor(
    quorum: Quorum,
    request: AcquireRequest,
    keys: readonly string[],
    place: Place | undefined,
    resolve: (outcome: AttemptOutcome) => void,
  ) {
    const { owner, ttlMs } = request;
    this.#quorum = quorum;
    this.#request = request;
    this.#keys = keys;
    this.#place = place;
    this.#resolve = resolve;
    this.#ballots = quorum.nodes.map(newBallot);
    this.#terms = quorum.terms(ttlMs);
    const proposal = quorum.proposals.next();
    this.#acquireCall = quorum.dialect.acquire(keys, owner, ttlMs, proposal, place);
  }

  start(): void {
    this.#request.cancellation.listen(() => this.#fail());
    this.#ask(undefined);
  }

  get #undecided(): boolean {
    return this.#phase === "granting" || this.#phase === "raising";
  }

  /**
   * A node that was not waited for is still to have the lock, also where it has to be asked twice
   * because it lacks the script: a lease that only a bare quorum has would not survive one failure.
   */
  get #isHeld(): boolean {
    if (this.#phase !== "granted" || this.#grant?.isOver === true) return false;
    return leftMs(this.#quorum.clock, this.#request.started, this.#terms.validityMs) >= 1;
  }

  #ask(among: readonly number[] | undefined): void {
    this.#round(this.#acquireCall, among, (index, reply, late) => {
      const ballot = this.#ballots[index];
      if (ballot === undefined) return;
      if (this.#undecided) this.#onAcquire(index, ballot, reply, late);
      else if (this.#phase === "failed" || this.#grant?.isOver === true)
        this.#onTooLate(index, reply);
      else if (isGrantOf(reply, this.#fence)) this.#grant?.addVote(index, 0);
    });
  }

  #raise(): void {
    this.#raised = true;
    const { owner } = this.#request;
    const call = this.#quorum.dialect.touch(this.#keys, owner, 0, this.#fence);
    const among: number[] = [];
    for (const [index, ballot] of this.#ballots.entries()) {
      // Also to those that have not answered: their grant may be on its way.
      const mayHaveGranted = ["granted", "pending", "unknown"].includes(ballot.vote);
      if (mayHaveGranted && !ballot.confirmed) among.push(index);
      else ballot.out = !ballot.confirmed;
    }
    this.#round(call, among, (index, reply, late) => {
      const ballot = this.#ballots[index];
      if (ballot !== undefined && this.#undecided) this.#onRaise(index, ballot, reply, late);
    });
  }

  #round<Reply>(
    call: NodeCall<Reply>,
    among: readonly number[] | undefined,
    onReply: (index: number, reply: NodeReply<Reply>, late: boolean) => void,
  ): void {
    const { nodes, scheduler, options, clock, size: enough } = this.#quorum;
    const { started, ttlMs } = this.#request;
    // Beyond the validity no answer can be of use.
    const nowMs = clock.monotonicMs();
    const usefulMs = Math.max(1, started.monotonicMs + this.#terms.validityMs - nowMs);
    const timeoutMs = Math.min(nodeTimeoutMs(options, ttlMs), usefulMs);
    const wanted = (): boolean => this.#undecided || this.#isHeld;
    const whom = among === undefined ? { enough } : { among };
    const how = { nodes, ...whom, call, scheduler, nowMs, timeoutMs, wanted, onReply };
    this.#rounds.push(new Round(how));
  }

  #onAcquire(index: number, ballot: Ballot, reply: NodeReply<AcquireReply>, late: boolean): void {
    // A late failure of a first question says nothing about the second.
    if (late && reply.kind !== "reply") return;
    const { asksMax } = this.#quorum.options;
    ballot.ms = this.#quorum.clock.monotonicMs() - this.#request.started.monotonicMs;
    if (reply.kind === "reply") {
      this.#onVote(index, ballot, reply.reply);
    } else if (reply.kind === "unknown" && ballot.asked < asksMax && this.#phase === "granting") {
      ballot.asked += 1;
      ballot.cause = reply.error;
      this.#ask([index]);
      return;
    } else {
      const neverSent = reply.kind === "unsent" && ballot.asked === 1;
      ballot.maybeApplied = !neverSent;
      ballot.vote = neverSent || reply.kind === "error" ? "failed" : "unknown";
      ballot.cause = reply.error;
    }
    this.#decide();
  }

  #onVote(index: number, ballot: Ballot, reply: AcquireReply): void {
    switch (reply.kind) {
      case "granted":
        ballot.clockEpoch = this.#quorum.nodes[index]?.clockEpoch ?? 0;
        this.#onGrant(ballot, reply.fence, reply.runId);
        return;
      case "held":
        ballot.vote = ballot.vote === "granted" ? "failed" : "held";
        ballot.freeInMs = reply.freeInMs;
        this.#holder ??= reply.holder;
        if (reply.holder?.fence !== undefined) {
          this.#quorum.proposals.see(Number(reply.holder.fence));
        }
        return;
      case "blank":
        ballot.vote = "blank";
        ballot.cause = this.#quorum.onBlank(index, reply.report);
        return;
      case "refused":
        ballot.vote = "failed";
        ballot.cause = reply.error;
        return;
      default:
        reply satisfies never;
    }
  }

  #onGrant(ballot: Ballot, fence: number, runId: string | undefined): void {
    this.#quorum.proposals.see(fence);
    if (!noteGrant(ballot, fence, runId)) return;
    if (this.#phase === "raising" && fence === this.#fence) ballot.confirmed = true;
  }

  #onRaise(index: number, ballot: Ballot, reply: NodeReply<TouchReply>, late: boolean): void {
    if (reply.kind === "reply") {
      ballot.confirmed = reply.reply.kind === "done";
      ballot.clockEpoch = this.#quorum.nodes[index]?.clockEpoch ?? 0;
      ballot.out = !ballot.confirmed;
      if (reply.reply.kind === "blank") this.#quorum.onBlank(index, reply.reply.report);
    } else if (!late) {
      ballot.out = true;
      // It granted, and then it failed: that is no doing of other holders.
      ballot.vote = "unknown";
      ballot.cause = reply.error;
    }
    this.#decide();
  }

  #decide(): void {
    if (this.#phase === "granting") this.#decideGranting();
    if (this.#phase === "raising") this.#decideRaising();
  }

  #decideGranting(): void {
    const { size } = this.#quorum;
    const granted = countOf(this.#ballots, "granted");
    if (this.#isLost(granted)) return this.#fail();
    if (granted < size) return;
    for (const { vote, fence } of this.#ballots) {
      if (vote === "granted" && fence > this.#fence) this.#fence = fence;
    }
    for (const ballot of this.#ballots) {
      ballot.confirmed = ballot.vote === "granted" && ballot.fence === this.#fence;
    }
    this.#phase = "raising";
    if (confirmedOf(this.#ballots) < size) this.#raise();
  }

  /**
   * Too few can still grant, and it is clear why: a quorum said yes or no, or too many failed. An
   * answer that would tell contention from a fault is worth waiting for.
   */
  #isLost(granted: number): boolean {
    const { size } = this.#quorum;
    const pending = countOf(this.#ballots, "pending");
    if (granted + pending >= size) return false;
    const held = countOf(this.#ballots, "held");
    return granted + held >= size || granted + held + pending < size;
  }

  #decideRaising(): void {
    const { size, nodes } = this.#quorum;
    const confirmed = confirmedOf(this.#ballots);
    // Where too few are left, a fresh attempt is the simplest: steps are rare.
    if (confirmed >= size) {
      return confirmed - dropStepped(nodes, this.#ballots) >= size ? this.#succeed() : this.#fail();
    }
    const possible = this.#ballots.filter((ballot) => ballot.confirmed || !ballot.out);
    if (possible.length < size) this.#fail();
  }

  /** The completion instant: one look at the clocks decides. */
  #succeed(): void {
    const { clock } = this.#quorum;
    const { started } = this.#request;
    if (this.#quorum.misfit(this.#ballots) !== undefined) return this.#fail();
    if (leftMs(clock, started, this.#terms.validityMs) < 1) return this.#fail();
    const spared = this.#end("granted");
    const votes = confirmedBits(this.#ballots);
    const grant = new RedisGrant(this.#terms, this.#request, this.#fence, votes);
    if (this.#place !== undefined) this.#quorum.places.set(grant, placeLeft("-", this.#place));
    this.#grant = grant;
    if (spared !== 0) this.#quorum.spared.set(grant, spared);
    if (this.#raised) this.#quorum.onRaised(grant);
    this.#quorum.onGranted(grant);
    this.#resolve({ kind: "granted", grant });
  }

  #fail(): void {
    const spared = this.#end("failed");
    const { owner, ttlMs } = this.#request;
    const place = placeLeft("=", this.#place);
    const without = withoutOurs(this.#ballots);
    const what = { keys: this.#keys, owner, ttlMs, place, without, spared };
    const cleanup = releaseAll(this.#quorum, what);
    const { resources } = this.#request;
    const refusal = { resources, ballots: this.#ballots, holder: this.#holder, cleanup };
    this.#resolve(refusedOutcome(this.#quorum, refusal));
  }

  /** Returns the nodes that were left alone all the time, a bit for each. */
  #end(phase: "granted" | "failed"): number {
    this.#phase = phase;
    this.#request.cancellation.listen(undefined);
    const spared = this.#rounds[0]?.spared ?? 0;
    for (const round of this.#rounds) round.end();
    return spared;
  }

  /**
   * Our release may have overtaken a repeat on another connection, or a driver sent the question
   * again when all was over: a late grant goes back.
   */
  #onTooLate(index: number, reply: NodeReply<AcquireReply>): void {
    if (reply.kind !== "reply" || reply.reply.kind !== "granted") return;
    const { owner, ttlMs } = this.#request;
    releaseOn(this.#quorum, index, { keys: this.#keys, owner, ttlMs, place: "" });
  }
}
