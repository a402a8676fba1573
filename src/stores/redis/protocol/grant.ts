import type { Grant } from "../../../core/store.ts";
import { sizeOf, type NodeSet } from "./node-set.ts";
import type { Quorum } from "./quorum.ts";
import type { BegunRelease } from "./release.ts";
import { lockKey, lockKeys } from "../commands/keys.ts";
import { driftMs, nodeTimeoutMs, type StoreSettings } from "./store-settings.ts";

/** Fields that all grants of one quorum with the same TTL share. perf (held): stored only once. */
export interface GrantFields {
  /** Identity of the quorum that granted: grants of other quorums have another object here. */
  readonly home: object;
  readonly prefix: string;
  readonly owners: ShortOwners;
  readonly ttlMs: number;
  readonly validityMs: number;
  /** Time to wait for one node in a round. */
  readonly timeoutMs: number;
  /** Longest TTL that the keys may have: more than `ttlMs` after an extend to a longer TTL. */
  readonly lifeMs: number;
  /**
   * Monotonic time at which the last extend to a longer TTL ends; 0 if there was no such extend.
   */
  readonly longUntilMs: number;
  /**
   * True after the grant has lost a vote: the key on that node may expire before the lease ends.
   */
  readonly lifeInDoubt: boolean;
}

/** Makes the fields that grants share. perf (held): one object while the TTL is the same. */
export class SharedGrantFields {
  readonly #options: StoreSettings;
  readonly #owners = new ShortOwners();
  #last: GrantFields | undefined;

  constructor(options: StoreSettings) {
    this.#options = options;
  }

  of(ttlMs: number): GrantFields {
    if (this.#last?.ttlMs !== ttlMs) {
      const { prefix } = this.#options;
      const owners = this.#owners;
      const validityMs = ttlMs - driftMs(this.#options, ttlMs);
      const timeoutMs = nodeTimeoutMs(this.#options, ttlMs);
      const life = { lifeMs: ttlMs, longUntilMs: 0, lifeInDoubt: false };
      this.#last = { home: this, prefix, owners, ttlMs, validityMs, timeoutMs, ...life };
    }
    return this.#last;
  }
}

/** A lock that a quorum granted. perf (held): stores nothing that can be derived. */
export class RedisGrant implements Grant {
  /**
   * Fence that the nodes store: the greatest one reserved for this grant. 0 if the store uses no
   * fences.
   */
  fenceNumber: number;
  /** Nodes whose votes the grant rests on. */
  votes: NodeSet;
  /** Number of hand-overs left. Each one uses the next of the fences reserved with the grant. */
  reservedFences: number;
  #fields: GrantFields;
  readonly #owner: string | number;
  /** perf (held): a single resource is stored without an array. */
  readonly #names: string | readonly string[];
  /** Number of times that a quorum confirmed the grant after the attempt. */
  #confirmations = 0;
  #begunRelease: BegunRelease | undefined = undefined;

  constructor(
    fields: GrantFields,
    request: { readonly resources: readonly string[]; readonly owner: string },
    fenceNumber: number,
    votes: NodeSet,
    reservedFences: number,
  ) {
    const { resources, owner } = request;
    const [name] = resources;
    this.#fields = fields;
    this.#names = resources.length === 1 && name !== undefined ? name : resources;
    this.#owner = fields.owners.shorten(owner);
    this.fenceNumber = fenceNumber;
    this.votes = votes;
    this.reservedFences = reservedFences;
  }

  get owner(): string {
    return this.#fields.owners.restore(this.#owner);
  }

  get resources(): readonly string[] {
    return typeof this.#names === "string" ? [this.#names] : this.#names;
  }

  get keys(): readonly string[] {
    const { prefix } = this.#fields;
    const names = this.#names;
    return typeof names === "string" ? [lockKey(prefix, names)] : lockKeys(prefix, names);
  }

  /** The key of a grant with one resource; undefined if it has several. */
  get onlyKey(): string | undefined {
    const names = this.#names;
    return typeof names === "string" ? lockKey(this.#fields.prefix, names) : undefined;
  }

  get home(): object {
    return this.#fields.home;
  }

  get ttlMs(): number {
    return this.#fields.ttlMs;
  }

  get validityMs(): number {
    return this.#fields.validityMs;
  }

  /** Longest time for which the keys may remain after a release that reached no node. */
  get lifeMs(): number {
    return this.#fields.lifeMs;
  }

  /** Notes that the keys may get this TTL, even if the extend that follows fails. */
  livesFor(ttlMs: number): void {
    if (ttlMs > this.#fields.lifeMs) this.#fields = { ...this.#fields, lifeMs: ttlMs };
  }

  /**
   * TTL that `prove` sets: 0 if the keys keep theirs, or a full TTL if a key may expire before the
   * lease ends.
   */
  get proofTtlMs(): number {
    return this.#fields.lifeInDoubt ? this.#fields.lifeMs : 0;
  }

  get fence(): bigint | undefined {
    return this.fenceNumber === 0 ? undefined : BigInt(this.fenceNumber - this.reservedFences);
  }

  /** True once the release has begun: no request may set the keys again. */
  get isOver(): boolean {
    return this.#begunRelease !== undefined;
  }

  get begunRelease(): BegunRelease | undefined {
    return this.#begunRelease;
  }

  /**
   * Hands the grant over to the next holder in the same manager. False if no reserved fence is
   * left.
   */
  handOver(): boolean {
    if (this.reservedFences === 0 || this.isOver) return false;
    this.reservedFences -= 1;
    return true;
  }

  end(begunRelease: BegunRelease): void {
    this.#begunRelease = begunRelease;
  }

  /**
   * Records that a quorum extended the grant to `ttlMs`, or proved it (`ttlMs` 0), in reply to a
   * request sent at `sentMs`. The grant rests on `votes` from now on. Returns the number of this
   * confirmation. Returns -1 if an earlier, longer extend ends later: its votes are kept.
   */
  confirm(votes: NodeSet, sentMs: number, ttlMs: number): number {
    const untilMs = sentMs + ttlMs;
    if (untilMs < this.#fields.longUntilMs) return -1;
    const fields = this.#fields;
    if (ttlMs > fields.ttlMs) this.#fields = { ...fields, longUntilMs: untilMs };
    this.votes = votes;
    this.#confirmations += 1;
    return this.#confirmations;
  }

  /**
   * Adds the vote of a node that replied after the outcome, unless a newer confirmation has
   * replaced the one with this number.
   */
  addVote(node: number, confirmation: number): void {
    if (confirmation === this.#confirmations && !this.isOver) this.votes |= 1 << node;
  }

  /**
   * Removes the vote of one node, whose keys may expire early: its clock was set, or it is a former
   * replica that lacks the last extend. A later `prove` sets their TTL again. Returns how many
   * votes are left.
   */
  loseVote(node: number): number {
    if (!this.#fields.lifeInDoubt) this.#fields = { ...this.#fields, lifeInDoubt: true };
    this.votes &= ~(1 << node);
    return sizeOf(this.votes);
  }
}

/**
 * Records the nodes that confirmed a grant, by `RedisGrant.confirm`. Two nodes with the same server
 * have one vote.
 */
export function confirm(
  quorum: Pick<Quorum, "duplicates">,
  grant: RedisGrant,
  votes: NodeSet,
  sentMs: number,
  ttlMs: number,
): number {
  return grant.confirm(quorum.duplicates.distinct(votes), sentMs, ttlMs);
}

/** Adds a late vote to a grant, unless the grant already has one of the same server. */
export function addVote(
  quorum: Pick<Quorum, "duplicates">,
  grant: RedisGrant | undefined,
  index: number,
  confirmation: number,
): void {
  if (grant === undefined) return;
  const votes = grant.votes | (1 << index);
  if (quorum.duplicates.distinct(votes) === votes) grant.addVote(index, confirmation);
}

/** Limit for the digits of a counter, so that its number always fits into a safe integer. */
const digitsMax = 9;
/** Limit for the number of different labels whose owners are stored as numbers. */
const labelsMax = 8;

/**
 * Stores owners as numbers. perf (held): owners of one manager differ only in the counter behind
 * their common base, and in the label. So each lease stores the counter with the index of the label
 * (`shorten`), and the owner is made again when it is needed (`restore`).
 */
class ShortOwners {
  /**
   * Common beginning of the owners, from the first one. Never changed: stored numbers depend on it.
   */
  #base: string | undefined;
  /** Ends of owners behind the counter: "" or "@" and a label. Their indices never change. */
  readonly #ends: string[] = [];
  /**
   * Last owner that was stored as a number, and that number. perf: usually the next call needs the
   * text of this owner again.
   */
  #last = "";
  #lastNumber = -1;

  /** Returns the owner itself if it has another form, or a label too many. */
  shorten(owner: string): string | number {
    const at = owner.indexOf("@");
    const endAt = at < 0 ? owner.length : at;
    this.#base ??= owner.slice(0, owner.lastIndexOf("-", endAt) + 1);
    const count = owner.startsWith(this.#base) ? countIn(owner, this.#base.length, endAt) : -1;
    const end = count < 0 ? -1 : this.#indexOf(owner, endAt);
    if (end < 0) return owner;
    this.#last = owner;
    this.#lastNumber = count * labelsMax + end;
    return this.#lastNumber;
  }

  restore(short: string | number): string {
    if (typeof short === "string") return short;
    if (short === this.#lastNumber) return this.#last;
    const count = Math.floor(short / labelsMax);
    return `${this.#base}${count.toString(36)}${this.#ends[short % labelsMax]}`;
  }

  /** Returns the index of what stands behind the counter; -1 if there are too many of these. */
  #indexOf(owner: string, endAt: number): number {
    const ends = this.#ends;
    for (let index = 0; index < ends.length; index += 1) {
      const end = ends[index] ?? "";
      if (owner.length - endAt === end.length && owner.endsWith(end)) return index;
    }
    if (ends.length === labelsMax) return -1;
    return ends.push(owner.slice(endAt)) - 1;
  }
}

/**
 * Parses `text` between two indices as a number in base 36. Returns -1 if `toString(36)` would not
 * make the same text of the number.
 */
function countIn(text: string, from: number, to: number): number {
  if (from >= to || to - from > digitsMax) return -1;
  let number = 0;
  for (let index = from; index < to; index += 1) {
    const code = text.charCodeAt(index);
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 122 ? code - 87 : -1;
    if (digit < 0 || (number === 0 && digit === 0)) return -1;
    number = number * 36 + digit;
  }
  return number;
}
