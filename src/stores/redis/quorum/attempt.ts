import type { Holder } from "../../../core/errors.ts";
import type { AcquireRequest, AttemptOutcome } from "../../../core/store.ts";
import { leftMs } from "../../../core/validity.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeReply } from "../node-reply.ts";
import { driftMs, nodeTimeoutMs } from "../options.ts";
import type { AcquireReply, TouchReply } from "../replies.ts";
import { countOf, dropStepped, isGrantOf, newBallot, type Ballot } from "./ballot.ts";
import { RedisGrant, votesOfNodes } from "./grant.ts";
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
): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(quorum, request, keys, resolve).start());
}

class Attempt {
  readonly #quorum: Quorum;
  readonly #request: AcquireRequest;
  readonly #keys: readonly string[];
  readonly #resolve: (outcome: AttemptOutcome) => void;
  readonly #ballots: Ballot[];
  readonly #rounds: { end(): void }[] = [];
  readonly #validityMs: number;
  /** The same for every node and every repeat, so that a repeat is recognised as our own. */
  readonly #acquireCall: NodeCall<AcquireReply>;
  #phase: "granting" | "raising" | "granted" | "failed" = "granting";
  /** The greatest fence granted, once a quorum has granted. */
  #fence = 0;
  #holder: Holder | undefined;
  #raised = false;
  readonly #life = { isOver: false };
  #grant: RedisGrant | undefined;

  constructor(
    quorum: Quorum,
    request: AcquireRequest,
    keys: readonly string[],
    resolve: (outcome: AttemptOutcome) => void,
  ) {
    const { owner, ttlMs } = request;
    this.#quorum = quorum;
    this.#request = request;
    this.#keys = keys;
    this.#resolve = resolve;
    this.#ballots = quorum.nodes.map(newBallot);
    this.#validityMs = ttlMs - driftMs(quorum.options, ttlMs);
    this.#acquireCall = quorum.dialect.acquire(keys, owner, ttlMs, quorum.proposals.next());
  }

  start(): void {
    this.#request.cancellation.listen(() => this.#fail());
    this.#ask(this.#quorum.nodes.map((_, index) => index));
  }

  get #undecided(): boolean {
    return this.#phase === "granting" || this.#phase === "raising";
  }

  /**
   * A node that was not waited for is still to have the lock, also where it has to be asked twice
   * because it lacks the script: a lease that only a bare quorum has would not survive one failure.
   */
  get #isHeld(): boolean {
    if (this.#phase !== "granted" || this.#life.isOver) return false;
    return leftMs(this.#quorum.clock, this.#request.started, this.#validityMs) >= 1;
  }

  #ask(among: readonly number[]): void {
    this.#round(this.#acquireCall, among, (index, reply, late) => {
      const ballot = this.#ballots[index];
      if (ballot === undefined) return;
      if (this.#undecided) this.#onAcquire(index, ballot, reply, late);
      else if (this.#phase === "failed" || this.#life.isOver) this.#onTooLate(index, reply);
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
    among: readonly number[],
    onReply: (index: number, reply: NodeReply<Reply>, late: boolean) => void,
  ): void {
    const { nodes, scheduler, options, clock } = this.#quorum;
    const { started, ttlMs } = this.#request;
    // Beyond the validity no answer can be of use.
    const usefulMs = Math.max(1, leftMs(clock, started, this.#validityMs));
    const timeoutMs = Math.min(nodeTimeoutMs(options, ttlMs), usefulMs);
    const wanted = (): boolean => this.#undecided || this.#isHeld;
    this.#rounds.push(new Round({ nodes, among, call, scheduler, timeoutMs, wanted, onReply }));
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
        this.#holder ??= reply.holder;
        if (reply.holder.fence !== undefined) {
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
    if (ballot.vote === "held" || (ballot.fence !== 0 && ballot.fence !== fence)) {
      // Two answers that do not go together: the key came and went in between.
      ballot.vote = "failed";
      ballot.cause = new Error("the node gave two different answers");
      ballot.confirmed = false;
      ballot.out = true;
      return;
    }
    ballot.vote = "granted";
    ballot.cause = undefined;
    ballot.fence = fence;
    ballot.runId = runId;
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
    const granted = countOf(this.#ballots, (ballot) => ballot.vote === "granted");
    if (this.#isLost(granted)) return this.#fail();
    if (granted < size) return;
    for (const { vote, fence } of this.#ballots) {
      if (vote === "granted" && fence > this.#fence) this.#fence = fence;
    }
    for (const ballot of this.#ballots) {
      ballot.confirmed = ballot.vote === "granted" && ballot.fence === this.#fence;
    }
    this.#phase = "raising";
    if (countOf(this.#ballots, (ballot) => ballot.confirmed) < size) this.#raise();
  }

  /**
   * Too few can still grant, and it is clear why: a quorum said yes or no, or too many failed. An
   * answer that would tell contention from a fault is worth waiting for.
   */
  #isLost(granted: number): boolean {
    const { size } = this.#quorum;
    const pending = countOf(this.#ballots, (ballot) => ballot.vote === "pending");
    if (granted + pending >= size) return false;
    const held = countOf(this.#ballots, (ballot) => ballot.vote === "held");
    return granted + held >= size || granted + held + pending < size;
  }

  #decideRaising(): void {
    const { size, nodes } = this.#quorum;
    const confirmed = countOf(this.#ballots, (ballot) => ballot.confirmed);
    // Where too few are left, a fresh attempt is the simplest: steps are rare.
    if (confirmed >= size) {
      return confirmed - dropStepped(nodes, this.#ballots) >= size ? this.#succeed() : this.#fail();
    }
    const possible = countOf(this.#ballots, (ballot) => ballot.confirmed || !ballot.out);
    if (possible < size) this.#fail();
  }

  /** The completion instant: one look at the clocks decides. */
  #succeed(): void {
    const { clock } = this.#quorum;
    const { resources, owner, ttlMs, started } = this.#request;
    if (this.#quorum.misfit(this.#ballots) !== undefined) return this.#fail();
    if (leftMs(clock, started, this.#validityMs) < 1) return this.#fail();
    this.#end("granted");
    const fenceNumber = this.#fence;
    const validityMs = this.#validityMs;
    const keys = this.#keys;
    const confirmed = this.#ballots.flatMap((ballot, index) => (ballot.confirmed ? [index] : []));
    const votes = votesOfNodes(confirmed);
    const home = this.#quorum;
    const life = this.#life;
    const terms = { resources, keys, owner, ttlMs, validityMs, fenceNumber, votes, home, life };
    const grant = new RedisGrant(terms);
    this.#grant = grant;
    if (this.#raised) this.#quorum.onRaised(grant);
    this.#resolve({ kind: "granted", grant });
  }

  #fail(): void {
    this.#end("failed");
    const { owner, ttlMs } = this.#request;
    const neverAsked = new Set<number>();
    for (const [index, ballot] of this.#ballots.entries()) {
      if (!ballot.maybeApplied) neverAsked.add(index);
    }
    const cleanup = releaseAll(this.#quorum, { keys: this.#keys, owner, ttlMs, neverAsked });
    const { resources } = this.#request;
    const holder = this.#holder;
    this.#resolve(
      refusedOutcome(this.#quorum, { resources, ballots: this.#ballots, holder, cleanup }),
    );
  }

  #end(phase: "granted" | "failed"): void {
    this.#phase = phase;
    this.#request.cancellation.listen(undefined);
    for (const round of this.#rounds) round.end();
  }

  /**
   * Our release may have overtaken a repeat on another connection, or a driver sent the question
   * again when all was over: a late grant goes back.
   */
  #onTooLate(index: number, reply: NodeReply<AcquireReply>): void {
    if (reply.kind !== "reply" || reply.reply.kind !== "granted") return;
    const { owner, ttlMs } = this.#request;
    releaseOn(this.#quorum, index, { keys: this.#keys, owner, ttlMs });
  }
}
