/**
 * One attempt to get a lock from a quorum of nodes.
 *
 * Problem: a quorum must grant the same lock with the same fence, although replies get lost.
 *
 * Idea: an acquire round goes to all nodes at once. A node whose reply was lost receives the
 * request again, and detects the repeat by its owner. If the granted fences differ, a raise round
 * updates the stored fences to the greatest one on a quorum. The attempt is decided as soon as its
 * outcome is certain.
 *
 * Limits: all rounds together end at `#endsMs`. A failed attempt releases its keys on every
 * node that may have them. A grant that arrives late counts as one more vote, or is released.
 */

import type { Holder } from "../../../core/errors.ts";
import type { AcquireRequest, AttemptOutcome } from "../../../core/store.ts";
import { leftMs } from "../../../core/time/instant.ts";
import { placeLeft, type Place } from "../commands/operation.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { AcquireReply, TouchReply } from "../commands/operation.ts";
import {
  confirmedNodes,
  confirmGrantsOf,
  confirmedOf,
  dropStepped,
  greatestFence,
  isGrantOf,
  isLost,
  leftBehind,
  newBallots,
  noteFailure,
  noteGrant,
  noteHeld,
  noteRaised,
  noteRaiseFailure,
  noteSilent,
  raisable,
  tallyOf,
  type Ballot,
} from "./ballot.ts";
import { addVote, RedisGrant, type GrantFields } from "./grant.ts";
import type { NodeSet } from "./node-set.ts";
import type { Quorum } from "./quorum.ts";
import { refusedOutcome } from "./refused-outcome.ts";
import { releaseAll, releaseOn, type BegunRelease } from "./release.ts";
import type { Round, RoundListener, TimedOut } from "./round.ts";

export function attempt(
  quorum: Quorum,
  request: AcquireRequest,
  keys: readonly string[],
  place?: Place,
): Promise<AttemptOutcome> {
  return new Promise((resolve) => new Attempt(quorum, request, keys, place, resolve).start());
}

/** perf (sequential): an attempt is the listener of its rounds, which saves objects per attempt. */
class Attempt implements RoundListener<AcquireReply> {
  /** Acquire, the same for every node and repeat: a node detects a repeat by its owner. */
  readonly #call: NodeCall<AcquireReply>;
  readonly #sentMs: number;
  readonly #quorum: Quorum;
  readonly #request: AcquireRequest;
  readonly #keys: readonly string[];
  readonly #place: Place | undefined;
  readonly #resolve: (outcome: AttemptOutcome) => void;
  readonly #ballots: Ballot[];
  readonly #fields: GrantFields;
  /** End of all rounds: the least of two node timeouts, wait plus one timeout, and validity. */
  readonly #endsMs: number;
  #first: Round<AcquireReply> | undefined;
  /** Rounds after the first one: repeated acquires, and the raise (update of stored fences). */
  #more: { end(): void }[] | undefined;
  #phase: "granting" | "raising" | "granted" | "failed" = "granting";
  /** Greatest fence granted; 0 until a quorum has granted. */
  #fence = 0;
  #holder: Holder | undefined;
  #raised = false;
  #grant: RedisGrant | undefined;
  #cleanup: BegunRelease | undefined;

  constructor(
    quorum: Quorum,
    request: AcquireRequest,
    keys: readonly string[],
    place: Place | undefined,
    resolve: (outcome: AttemptOutcome) => void,
  ) {
    const { owner, ttlMs, started, waitEndsMs = Infinity } = request;
    this.#quorum = quorum;
    this.#request = request;
    this.#keys = keys;
    this.#place = place;
    this.#resolve = resolve;
    this.#ballots = newBallots(quorum.nodes.length);
    this.#fields = quorum.fields.of(ttlMs);
    this.#sentMs = quorum.clock.monotonicMs();
    const { timeoutMs, validityMs } = this.#fields;
    const firstEndsMs = Math.min(this.#sentMs + timeoutMs, Math.max(this.#sentMs, waitEndsMs));
    this.#endsMs = Math.min(firstEndsMs + timeoutMs, started.monotonicMs + validityMs);
    this.#call = quorum.calls.acquire(keys, owner, ttlMs, quorum.proposals.next(), place);
  }

  start(): void {
    this.#request.cancellation.listen(() => this.#fail());
    const { rounds } = this.#quorum;
    const timeoutMs = this.#usefulMs(this.#sentMs);
    this.#first = rounds.toQuorum(this.#call, timeoutMs, this, this.#sentMs);
  }

  /** True if a delayed acquire is of use: even after the grant, as one more vote for the lease. */
  wanted(): boolean {
    if (this.#undecided()) return true;
    if (this.#begunRelease !== undefined) return false;
    return leftMs(this.#quorum.clock, this.#request.started, this.#fields.validityMs) >= 1;
  }

  onReply(index: number, reply: NodeReply<AcquireReply>, late: boolean): void {
    const ballot = this.#ballots[index];
    if (ballot === undefined) return;
    if (reply.kind === "reply") this.#quorum.proposals.learn(reply.reply);
    if (this.#undecided()) this.#onAcquire(index, ballot, reply, late);
    else if (this.#begunRelease !== undefined) this.#onTooLate(index, reply);
    else if (isGrantOf(reply, this.#fence)) addVote(this.#quorum, this.#grant, index, 0);
  }

  onTimeUp(timedOut: readonly TimedOut[]): void {
    noteSilent(this.#ballots, timedOut);
  }

  /** Returns the timeout of a round that begins now: all rounds end at `#endsMs`. */
  #usefulMs(nowMs: number): number {
    const leftMs = Math.max(1, this.#endsMs - nowMs);
    return Math.min(this.#fields.timeoutMs, leftMs);
  }

  get #begunRelease(): BegunRelease | undefined {
    return this.#cleanup ?? this.#grant?.begunRelease;
  }

  #undecided(): boolean {
    return this.#phase === "granting" || this.#phase === "raising";
  }

  #raise(): void {
    this.#raised = true;
    const call = this.#quorum.calls.touch(this.#keys, this.#request.owner, 0, this.#fence);
    this.#begin(raisable(this.#ballots), call, {
      wanted: () => this.wanted(),
      onReply: (index, reply, late) => {
        if (this.#undecided()) this.#onRaise(index, reply, late);
      },
      onTimeUp: (timedOut) => this.onTimeUp(timedOut),
    });
  }

  #begin<Reply>(among: NodeSet, call: NodeCall<Reply>, listener: RoundListener<Reply>): void {
    const timeoutMs = this.#usefulMs(this.#quorum.clock.monotonicMs());
    (this.#more ??= []).push(this.#quorum.rounds.toSome(among, call, timeoutMs, listener));
  }

  #onAcquire(index: number, ballot: Ballot, reply: NodeReply<AcquireReply>, late: boolean): void {
    // A late failure of the first request proves nothing about the repeat.
    if (late && reply.kind !== "reply") return;
    const nowMs = this.#quorum.clock.monotonicMs();
    ballot.ms = nowMs - this.#request.started.monotonicMs;
    const canRepeat = ballot.sent < this.#quorum.options.acquiresMax && this.#endsMs - nowMs >= 1;
    if (reply.kind === "reply") {
      ballot.silent = false;
      this.#onVote(index, ballot, reply.reply);
    } else if (reply.kind === "unknown" && canRepeat && this.#phase === "granting") {
      ballot.sent += 1;
      ballot.cause = reply.error;
      this.#begin(1 << index, this.#call, this);
      return;
    } else {
      noteFailure(ballot, reply);
    }
    this.#decide();
  }

  #onVote(index: number, ballot: Ballot, reply: AcquireReply): void {
    switch (reply.kind) {
      case "granted":
        ballot.clockEpoch = this.#quorum.nodes[index]?.health.clockEpoch ?? 0;
        if (!noteGrant(ballot, reply.fence, this.#quorum.nodes[index]?.health.lastRunId)) return;
        if (this.#phase === "raising" && reply.fence === this.#fence) ballot.confirmed = true;
        return;
      case "held":
        noteHeld(ballot, reply);
        this.#holder ??= reply.holder;
        return;
      case "blank":
        ballot.vote = "blank";
        ballot.cause = this.#quorum.admissions.noticeBlank(index, reply.report);
        return;
      case "refused":
        ballot.vote = "failed";
        ballot.cause = reply.error;
        return;
      default:
        reply satisfies never;
    }
  }

  #onRaise(index: number, reply: NodeReply<TouchReply>, late: boolean): void {
    const ballot = this.#ballots[index];
    if (ballot === undefined) return;
    if (reply.kind === "reply") {
      noteRaised(ballot, reply.reply.kind === "done", this.#quorum.nodes[index]?.health.clockEpoch);
      if (reply.reply.kind === "blank")
        this.#quorum.admissions.noticeBlank(index, reply.reply.report);
    } else if (!late) {
      noteRaiseFailure(ballot, reply);
    }
    this.#decide();
  }

  #decide(): void {
    if (this.#phase === "granting") this.#decideGranting();
    if (this.#phase === "raising") this.#decideRaising();
  }

  #decideGranting(): void {
    const { size } = this.#quorum;
    const tally = tallyOf(this.#ballots);
    if (isLost(tally, size)) return this.#fail();
    if (tally.granted < size) return;
    this.#fence = greatestFence(this.#ballots);
    confirmGrantsOf(this.#ballots, this.#fence);
    this.#phase = "raising";
    if (confirmedOf(this.#ballots) < size) this.#raise();
  }

  #decideRaising(): void {
    const { size } = this.#quorum;
    const confirmed = confirmedOf(this.#ballots);
    // A step of a server's clock voids its vote. Steps are rare: the caller makes a new attempt.
    if (confirmed >= size) {
      const left = confirmed - dropStepped(this.#quorum.nodes, this.#ballots);
      return left >= size ? this.#succeed() : this.#fail();
    }
    const possible = this.#ballots.filter((ballot) => ballot.confirmed || !ballot.out);
    if (possible.length < size) this.#fail();
  }

  /** Grants the lease if a last check of the clocks shows that validity is left. */
  #succeed(): void {
    const { clock, nodes, duplicates } = this.#quorum;
    if (nodes.length > 1 && duplicates.check(this.#ballots) !== undefined) return this.#fail();
    if (leftMs(clock, this.#request.started, this.#fields.validityMs) < 1) return this.#fail();
    const skipped = this.#end("granted");
    const votes = confirmedNodes(this.#ballots);
    const reservedFences = (this.#place?.tenures ?? 1) - 1;
    const grant = new RedisGrant(this.#fields, this.#request, this.#fence, votes, reservedFences);
    if (this.#place !== undefined) this.#quorum.places.set(grant, placeLeft("-", this.#place));
    this.#grant = grant;
    if (skipped !== 0) this.#quorum.skipped.set(grant, skipped);
    if (this.#raised) this.#reportRaise(grant);
    this.#quorum.grantObserver?.onGranted(grant.ttlMs);
    this.#resolve({ kind: "granted", grant });
  }

  #reportRaise({ resources, fence }: RedisGrant): void {
    if (fence === undefined) return;
    this.#quorum.events.emit("fence-raised", { resources, label: undefined, fence });
  }

  #fail(): void {
    const skipped = this.#end("failed");
    const { owner, ttlMs, resources } = this.#request;
    const place = placeLeft("=", this.#place);
    const what = { keys: this.#keys, owner, ttlMs, place, skipped, ...leftBehind(this.#ballots) };
    const cleanup = releaseAll(this.#quorum, what, (begun) => (this.#cleanup = begun));
    const refusal = { resources, ballots: this.#ballots, holder: this.#holder, cleanup };
    this.#resolve(refusedOutcome(this.#quorum, refusal));
  }

  /** Ends all rounds. Returns the nodes to which the acquire was not sent. */
  #end(phase: "granted" | "failed"): NodeSet {
    this.#phase = phase;
    this.#request.cancellation.listen(undefined);
    const skipped = this.#first?.skipped ?? 0;
    this.#first?.end();
    if (this.#more !== undefined) for (const round of this.#more) round.end();
    return skipped;
  }

  /**
   * Releases a late grant: the acquire ran after the release, or a driver sent it a second time.
   */
  #onTooLate(index: number, reply: NodeReply<AcquireReply>): void {
    if (reply.kind !== "reply" || reply.reply.kind !== "granted") return;
    if (this.#begunRelease?.covers(index) === true) return;
    const { owner, ttlMs } = this.#request;
    releaseOn(this.#quorum, index, { keys: this.#keys, owner, ttlMs, place: "" });
  }
}
