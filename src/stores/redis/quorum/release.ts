import type { ReleaseOutcome } from "../../../core/store.ts";
import type { Scheduler } from "../../../core/scheduler.ts";
import type { PlaceLeft } from "../dialect.ts";
import type { NodeCall } from "../node-call.ts";
import type { NodeReply } from "../node-reply.ts";
import type { RedisNode } from "../node.ts";
import { nodeTimeoutMs } from "../options.ts";
import type { ReleaseReply } from "../replies.ts";
import type { RedisGrant } from "./grant.ts";
import { endsDebt, type Debt } from "./owed-releases.ts";
import type { Quorum } from "./quorum.ts";
import { bitCount, bitsOf, indicesOf } from "./bits.ts";
import { Round, type RoundOptions } from "./round.ts";

export interface ReleaseRequest {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ttlMs: number;
  /** The longest TTL that the keys may have been given. @default ttlMs */
  readonly lifeMs?: number;
  /** Of the grant, where there is one. */
  readonly fenceNumber?: number;
  readonly place: PlaceLeft;
  /** Nodes that certainly have nothing of the owner's: nothing is owed to them. */
  readonly without?: ReadonlySet<number>;
  /** Nodes that were not asked because they do not answer, a bit for each: left alone, too. */
  readonly spared?: number;
  /** Nodes that have just used up their time, a bit for each: asked and owed, not waited for. */
  readonly silent?: number;
}

/** A release under way. */
export interface GivingBack {
  /**
   * A node tells only now that it granted to the owner. Whether the release is behind that on the
   * same line and its answer still to come: then the grant goes back without another word.
   */
  covers(index: number): boolean;
}

/**
 * Deletes the owner's keys on every node, also those that failed or never answered. Resolves as
 * soon as the outcome is certain, at the latest after the node timeout; never rejects.
 */
export function release(
  quorum: Quorum,
  grant: RedisGrant,
  place: PlaceLeft = "",
  spared = 0,
): Promise<ReleaseOutcome> {
  const { keys, owner, ttlMs, lifeMs, fenceNumber } = grant;
  const request = { keys, owner, ttlMs, lifeMs, fenceNumber, place, spared };
  return new Promise((resolve) => {
    const givingBack = new Release(quorum, request, true, resolve);
    grant.end(givingBack);
    givingBack.start();
  });
}

/**
 * The clean-up after a failed attempt: done when every node has answered or run out of time. A node
 * that ran out of it in the attempt gets no more.
 */
export function releaseAll(
  quorum: Quorum,
  request: ReleaseRequest,
  onBegun: (givingBack: GivingBack) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const givingBack = new Release(quorum, request, false, () => resolve());
    onBegun(givingBack);
    givingBack.start();
  });
}

/** One node alone, without waiting: for a grant that came after its attempt had failed. */
export function releaseOn(quorum: Quorum, index: number, request: ReleaseRequest): void {
  const node = quorum.nodes[index];
  if (node === undefined) return;
  const call = quorum.dialect.release(request.keys, request.owner, request.place);
  const { ttlMs, lifeMs = ttlMs } = request;
  const debt = quorum.owed.owe(node, call, quorum.clock.monotonicMs(), lifeMs);
  const settle = (_: number, reply: NodeReply<ReleaseReply>): void => {
    if (endsDebt(reply)) quorum.owed.settle(debt);
  };
  node.run(call, { isWanted: () => true, settle }, index);
}

const released: ReleaseOutcome = { released: true };

/** It says what its round is, and is its ear: there is one for every lease. */
class Release implements RoundOptions<ReleaseReply>, GivingBack {
  readonly call: NodeCall<ReleaseReply>;
  readonly nodes: readonly RedisNode[];
  readonly among: readonly number[] | undefined;
  readonly enough: number | undefined;
  readonly scheduler: Scheduler;
  readonly nowMs: number;
  readonly timeoutMs: number;
  readonly #quorum: Quorum;
  readonly #request: ReleaseRequest;
  /** Over as soon as the outcome is certain, or when all have been heard. */
  readonly #untilCertain: boolean;
  readonly #resolve: (outcome: ReleaseOutcome) => void;
  #round: Round<ReleaseReply> | undefined;
  #debts: (Debt | undefined)[] | undefined;
  #left: number;
  /** Nodes whose answer is still to come, however long they take; a bit for each. */
  #unheard = 0;
  /** Those of them that have told of their grant in the meantime. */
  #grantedLate = 0;
  /** Nodes that are not waited for, a bit for each. */
  readonly #silent: number;
  /** Nodes that had all the owner's keys, and deleted them. */
  #deleted = 0;
  /** Nodes that had not, at the first time of asking: what is missing later may be our doing. */
  #missing = 0;

  constructor(
    quorum: Quorum,
    request: ReleaseRequest,
    untilCertain: boolean,
    resolve: (outcome: ReleaseOutcome) => void,
  ) {
    const { keys, owner, place, fenceNumber, ttlMs } = request;
    this.nodes = quorum.nodes;
    this.scheduler = quorum.scheduler;
    this.call = quorum.dialect.release(keys, owner, place, fenceNumber);
    this.nowMs = quorum.clock.monotonicMs();
    this.timeoutMs = nodeTimeoutMs(quorum.options, ttlMs);
    this.among = askedIn(quorum.nodes.length, request);
    this.enough = this.among === undefined ? quorum.size : undefined;
    this.#left = this.among?.length ?? quorum.nodes.length;
    this.#silent = (request.silent ?? 0) & bitsOf(this.among, quorum.nodes.length);
    this.#quorum = quorum;
    this.#request = request;
    this.#untilCertain = untilCertain;
    this.#resolve = resolve;
  }

  start(): void {
    if (this.#left === 0) return this.#resolve(this.#outcome());
    this.#unheard = bitsOf(this.among, this.nodes.length);
    this.#round = new Round(this);
    if (this.#silent === 0) return;
    for (const index of indicesOf(this.#silent)) this.#owe(index);
    this.#left -= bitCount(this.#silent);
    if (this.#left === 0) this.#finish();
  }

  covers(index: number): boolean {
    const bit = 1 << index;
    if ((this.#unheard & bit) === 0 || this.nodes[index]?.keepsOrder !== true) return false;
    this.#grantedLate |= bit;
    return true;
  }

  wanted(): boolean {
    return true;
  }

  onReply(index: number, reply: NodeReply<ReleaseReply>, late: boolean): void {
    const debt = this.#debts?.[index];
    if (!isTimeOut(reply)) this.#heard(index, reply);
    if (!endsDebt(reply)) this.#owe(index);
    else if (debt !== undefined) this.#quorum.owed.settle(debt);
    if (late || (this.#silent & (1 << index)) !== 0) return;
    this.#left -= 1;
    if (reply.kind === "reply") {
      if (reply.reply.whole) this.#deleted += 1;
      else if (!reply.reply.repeated) this.#missing += 1;
    }
    if (this.#left > 0 && !(this.#untilCertain && this.#isCertain())) return;
    // Those not waited for are owed it until they are heard from.
    if (this.#left > 0) for (const straggler of this.#round?.pending ?? []) this.#owe(straggler);
    this.#finish();
  }

  #finish(): void {
    // Those left alone so far will not be asked any more.
    this.#unheard &= ~(this.#round?.spared ?? 0);
    this.#round?.end();
    this.#resolve(this.#outcome());
  }

  /** It should have found what was granted before it; if not, it came before it after all. */
  #heard(index: number, reply: NodeReply<ReleaseReply>): void {
    const bit = 1 << index;
    this.#unheard &= ~bit;
    if ((this.#grantedLate & bit) === 0 || !endsDebt(reply) || isWhole(reply)) return;
    const { keys, owner, ttlMs, lifeMs = ttlMs } = this.#request;
    releaseOn(this.#quorum, index, { keys, owner, ttlMs, lifeMs, place: "" });
  }

  #isReleased(): boolean {
    return this.#deleted >= this.#quorum.size;
  }

  #isTaken(): boolean {
    return this.#missing > this.nodes.length - this.#quorum.size;
  }

  #isCertain(): boolean {
    return this.#isReleased() || this.#isTaken();
  }

  #outcome(): ReleaseOutcome {
    if (this.#isReleased()) return released;
    return { released: false, reason: this.#isTaken() ? "taken" : "unreachable" };
  }

  #owe(index: number): void {
    const node = this.nodes[index];
    const { ttlMs, lifeMs = ttlMs } = this.#request;
    this.#debts ??= [];
    if (node === undefined || this.#debts[index] !== undefined) return;
    this.#debts[index] = this.#quorum.owed.owe(node, this.call, this.nowMs, lifeMs);
  }
}

function isWhole(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "reply" && reply.reply.whole;
}

/** No more is waited for it, but it may still come. */
function isTimeOut(reply: NodeReply<ReleaseReply>): boolean {
  return reply.kind === "unknown" && reply.timedOut;
}

/** Undefined where all of them are. */
function askedIn(count: number, { without, spared = 0 }: ReleaseRequest): number[] | undefined {
  if (spared === 0 && (without === undefined || without.size === 0)) return undefined;
  return Array.from({ length: count }, (_, index) => index).filter((index) => {
    return (spared & (1 << index)) === 0 && without?.has(index) !== true;
  });
}
