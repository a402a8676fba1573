/**
 * Extends many grants in one round, with one request per node.
 *
 * Problem: thousands of leases that are renewed one by one cost thousands of requests per node.
 *
 * Idea: a request lists up to 64 grants, and its reply has one verdict for each. Every grant is
 * decided by itself, by the rules of touch.ts, as soon as a quorum agrees. If a node refuses the
 * whole request, it receives a request for each grant alone. The same is done for a grant whose
 * verdict may come from a second run of the request.
 *
 * Limits: only grants of one key. A reply after the outcome adds a vote, if no newer extend
 * replaced it.
 */

import type { Instant } from "../../../core/ports.ts";
import type { ExtendOutcome, OnExtended } from "../../../core/store.ts";
import type { NodeCall } from "../commands/node-call.ts";
import type { NodeReply } from "../node/node-reply.ts";
import type { RenewReply, TouchReply } from "../commands/operation.ts";
import { isPermanent } from "../commands/refusals.ts";
import { Ballot, newBallots } from "./ballot.ts";
import { sizeOf, type NodeSet } from "./node-set.ts";
import { addVote, confirm, type RedisGrant } from "./grant.ts";
import type { Quorum } from "./quorum.ts";
import type { Round, RoundListener } from "./round.ts";
import { noteTouch, outcomeOf, quorumError, takeBackStepped } from "./touch.ts";
import { nodeTimeoutMs } from "./store-settings.ts";

/** Grants of one key each, and the call that extends them, in the same order. */
export interface RenewalRequest {
  readonly call: NodeCall<RenewReply>;
  readonly grants: readonly RedisGrant[];
  readonly ttlMs: number;
}

/** perf (renew): extends many grants with one request per node. Calls `onOutcome` for each. */
export function renewTogether(
  quorum: Quorum,
  request: RenewalRequest,
  onOutcome: OnExtended,
): void {
  new Renewal(quorum, request, onOutcome).start();
}

const undecided = -1;
const unconfirmed = 0;

/** One of the grants, and the nodes' replies for it. */
class Renewing {
  readonly place: number;
  readonly grant: RedisGrant;
  yes: NodeSet = 0;
  no: NodeSet = 0;
  failed: NodeSet = 0;
  /** Decision on this grant: `undecided`, `unconfirmed`, or the number of its confirmation. */
  confirmation = undecided;
  /** Requests for this grant alone, and the replies by node. */
  rounds: Round<TouchReply>[] | undefined = undefined;
  alone: Ballot[] | undefined = undefined;

  constructor(place: number, grant: RedisGrant) {
    this.place = place;
    this.grant = grant;
  }
}

class Renewal implements RoundListener<RenewReply> {
  readonly #quorum: Quorum;
  readonly #call: NodeCall<RenewReply>;
  readonly #timeoutMs: number;
  readonly #sentMs: number;
  readonly #ttlMs: number;
  readonly #onOutcome: OnExtended;
  readonly #extended: ExtendOutcome;
  readonly #all: Renewing[] = [];
  /** Replies to the common request, by node. */
  readonly #ballots: Ballot[];
  #left: number;
  #round: Round<RenewReply> | undefined;

  constructor(quorum: Quorum, { call, grants, ttlMs }: RenewalRequest, onOutcome: OnExtended) {
    this.#call = call;
    this.#sentMs = quorum.clock.monotonicMs();
    this.#timeoutMs = nodeTimeoutMs(quorum.options, ttlMs);
    this.#quorum = quorum;
    this.#ttlMs = ttlMs;
    this.#onOutcome = onOutcome;
    this.#extended = { kind: "extended", validityMs: quorum.fields.of(ttlMs).validityMs };
    for (const grant of grants) {
      grant.livesFor(ttlMs);
      this.#all.push(new Renewing(this.#all.length, grant));
    }
    this.#ballots = newBallots(quorum.nodes.length);
    this.#left = grants.length;
  }

  start(): void {
    const { rounds } = this.#quorum;
    this.#round = rounds.toQuorum(this.#call, this.#timeoutMs, this, this.#sentMs);
  }

  /**
   * True: a delayed request is always of use, because it extends a key late, and never creates one.
   */
  wanted(): boolean {
    return true;
  }

  onReply(index: number, reply: NodeReply<RenewReply>): void {
    if (reply.kind === "error" && this.#all.length > 1 && isPermanent(reply.error)) {
      // The node refused the whole request, perhaps because of one grant. Each grant is sent alone.
      for (const each of this.#all) this.#sendAlone(each, index);
    } else if (reply.kind !== "reply") {
      this.#allFailed(index, reply);
    } else if (reply.reply.kind !== "decided") {
      this.#allFailed(index, { kind: "reply", reply: reply.reply });
    } else {
      const { verdicts } = reply.reply;
      this.#noteAnswer(index);
      for (const each of this.#all) this.#onVerdict(each, index, verdicts.charAt(each.place));
    }
    this.#takeBackStepped();
    const received = this.#quorum.clock.now();
    for (const each of this.#all) this.#decide(each, received);
  }

  #allFailed(index: number, reply: NodeReply<TouchReply>): void {
    const ballot = this.#ballots[index];
    if (ballot !== undefined) noteTouch(this.#quorum, index, ballot, reply, this.#sentMs);
    for (const each of this.#all) each.failed |= 1 << index;
  }

  #noteAnswer(index: number): void {
    const ballot = this.#ballots[index];
    if (ballot === undefined) return;
    ballot.vote = "granted";
    ballot.clockEpoch = this.#quorum.nodes[index]?.health.clockEpoch ?? 0;
  }

  #onVerdict(each: Renewing, index: number, verdict: string): void {
    if (verdict === "K") this.#addYes(each, index);
    else if (verdict === "N") each.no |= 1 << index;
    else this.#sendAlone(each, index);
  }

  #addYes(each: Renewing, index: number): void {
    each.yes |= 1 << index;
    each.failed &= ~(1 << index);
    if (each.confirmation <= unconfirmed) return;
    addVote(this.#quorum, each.grant, index, each.confirmation);
  }

  #sendAlone(each: Renewing, index: number): void {
    const { grant } = each;
    const { calls, rounds } = this.#quorum;
    const call = calls.touch(grant.keys, grant.owner, this.#ttlMs, grant.fenceNumber);
    const wanted = (): boolean => !grant.isOver;
    const onReply = (_: number, reply: NodeReply<TouchReply>): void => {
      this.#onReplyAlone(each, index, reply);
    };
    const round = rounds.toSome(1 << index, call, this.#timeoutMs, { wanted, onReply });
    // The outcome of the grant is already certain. The request only extends the key on this node,
    // and nothing waits for the reply.
    if (each.confirmation !== undecided) return round.end();
    each.rounds ??= [];
    each.rounds.push(round);
  }

  #onReplyAlone(each: Renewing, index: number, reply: NodeReply<TouchReply>): void {
    each.alone ??= newBallots(this.#quorum.nodes.length);
    const ballot = each.alone[index];
    if (ballot === undefined) return;
    noteTouch(this.#quorum, index, ballot, reply, this.#sentMs);
    if (this.#ballots[index]?.vote === "pending") this.#noteAnswer(index);
    if (ballot.vote === "granted") this.#addYes(each, index);
    else if (ballot.vote === "held") each.no |= 1 << index;
    else each.failed |= 1 << index;
    this.#takeBackStepped();
    this.#decide(each, this.#quorum.clock.now());
  }

  #takeBackStepped(): void {
    const stepped = takeBackStepped(this.#quorum.nodes, this.#ballots);
    if (stepped === 0) return;
    for (const each of this.#all) {
      each.failed |= each.yes & stepped;
      each.yes &= ~stepped;
    }
  }

  #decide(each: Renewing, received: Instant): void {
    if (each.confirmation !== undecided) return;
    const { grant, place, yes, no } = each;
    const pending = this.#quorum.nodes.length - sizeOf(yes) - sizeOf(no) - sizeOf(each.failed);
    const outcome = outcomeOf(this.#quorum, yes, no, pending);
    if (outcome === undefined) return;
    const confirmation =
      outcome === "done" ? confirm(this.#quorum, grant, yes, this.#sentMs, this.#ttlMs) : 0;
    each.confirmation = Math.max(unconfirmed, confirmation);
    this.#left -= 1;
    if (this.#left === 0) this.#round?.end();
    if (each.rounds !== undefined) for (const round of each.rounds) round.end();
    if (outcome === "done") return this.#onOutcome(place, this.#extended, received);
    if (outcome === "gone") return this.#onOutcome(place, { kind: "gone" }, received);
    const error = quorumError(this.#quorum, grant, this.#ballotsOf(each), "extend");
    this.#onOutcome(place, { kind: "failed", error }, received);
  }

  #ballotsOf({ yes, no, failed, alone }: Renewing): Ballot[] {
    return this.#ballots.map((general, index) => {
      const own = alone?.[index];
      if (own !== undefined && own.vote !== "pending") return own;
      const bit = 1 << index;
      if ((failed & bit) !== 0) return general;
      const ballot = new Ballot();
      if (((yes | no) & bit) !== 0) ballot.vote = (yes & bit) === 0 ? "held" : "granted";
      return ballot;
    });
  }
}
