import type { Grant } from "../../../core/store.ts";
import { lockKey, lockKeys } from "../lock-key.ts";
import { bitCount } from "./bits.ts";
import type { GivingBack } from "./release.ts";
import type { ShortOwners } from "./short-owners.ts";

/** What the grants of one quorum have in common, for one TTL: kept once for all of them. */
export interface GrantTerms {
  /** The nodes that granted it. */
  readonly home: object;
  readonly prefix: string;
  readonly owners: ShortOwners;
  readonly ttlMs: number;
  readonly validityMs: number;
  /** The longest TTL that its keys may have been given: more than `ttlMs` after a longer extend. */
  readonly lifeMs: number;
  /** When a longer extend that succeeded ends, by the monotonic clock; 0 without one. */
  readonly longUntilMs: number;
}

/** What was granted. There may be a great many of them, so it keeps nothing that can be derived. */
export class RedisGrant implements Grant {
  /** As the nodes have it, the greatest of those reserved; 0 where the store does not fence. */
  fenceNumber: number;
  /** A bit for each node whose word it rests on. */
  votes: number;
  /** How many more holders it can be passed on to; their fences are reserved, up to its number. */
  spare: number;
  #terms: GrantTerms;
  readonly #owner: string | number;
  /** Alone where there is one. */
  readonly #names: string | readonly string[];
  /** How often it was confirmed anew. */
  #confirmations = 0;
  #givenBack: GivingBack | undefined = undefined;

  constructor(
    terms: GrantTerms,
    request: { readonly resources: readonly string[]; readonly owner: string },
    fenceNumber: number,
    votes: number,
    spare: number,
  ) {
    const { resources, owner } = request;
    const [name] = resources;
    this.#terms = terms;
    this.#names = resources.length === 1 && name !== undefined ? name : resources;
    this.#owner = terms.owners.shorten(owner);
    this.fenceNumber = fenceNumber;
    this.votes = votes;
    this.spare = spare;
  }

  get owner(): string {
    return this.#terms.owners.restore(this.#owner);
  }

  get resources(): readonly string[] {
    return typeof this.#names === "string" ? [this.#names] : this.#names;
  }

  get keys(): readonly string[] {
    const { prefix } = this.#terms;
    const names = this.#names;
    return typeof names === "string" ? [lockKey(prefix, names)] : lockKeys(prefix, names);
  }

  /** Undefined where it has several. */
  get onlyKey(): string | undefined {
    const names = this.#names;
    return typeof names === "string" ? lockKey(this.#terms.prefix, names) : undefined;
  }

  get home(): object {
    return this.#terms.home;
  }

  get ttlMs(): number {
    return this.#terms.ttlMs;
  }

  get validityMs(): number {
    return this.#terms.validityMs;
  }

  /** For so long after it was given back its keys may be there, if no release reached them. */
  get lifeMs(): number {
    return this.#terms.lifeMs;
  }

  /** Its keys are about to be given this TTL, and may have it even if the extend fails. */
  livesFor(ttlMs: number): void {
    if (ttlMs > this.#terms.lifeMs) this.#terms = { ...this.#terms, lifeMs: ttlMs };
  }

  get fence(): bigint | undefined {
    return this.fenceNumber === 0 ? undefined : BigInt(this.fenceNumber - this.spare);
  }

  /** Given back: nothing may set its keys again. */
  get isOver(): boolean {
    return this.#givenBack !== undefined;
  }

  get givenBack(): GivingBack | undefined {
    return this.#givenBack;
  }

  /** Another holder of the same manager has it from now on, under the next of its fences. */
  passOn(): boolean {
    if (this.spare === 0 || this.isOver) return false;
    this.spare -= 1;
    return true;
  }

  end(givenBack: GivingBack): void {
    this.#givenBack = givenBack;
  }

  /**
   * A quorum gave it this TTL, or confirmed it for 0, after a request of `sentMs`: it rests on
   * these nodes from now on. Returns which time it was. If an earlier and longer extend lasts
   * beyond that, it still rests on the nodes with the longer life, and -1 is returned.
   */
  confirm(votes: number, sentMs: number, ttlMs: number): number {
    const untilMs = sentMs + ttlMs;
    if (untilMs < this.#terms.longUntilMs) return -1;
    const terms = this.#terms;
    if (ttlMs > terms.ttlMs) this.#terms = { ...terms, longUntilMs: untilMs };
    this.votes = votes;
    this.#confirmations += 1;
    return this.#confirmations;
  }

  /** A node that was not waited for has confirmed as well, unless that was for an older time. */
  addVote(node: number, confirmation: number): void {
    if (confirmation === this.#confirmations && !this.isOver) this.votes |= 1 << node;
  }

  /** One node's word is worth nothing any more; returns how many are left. */
  loseVote(node: number): number {
    this.votes &= ~(1 << node);
    return bitCount(this.votes);
  }
}
