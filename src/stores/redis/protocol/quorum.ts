import type { HoldfastError } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { Dialect, PlaceLeft } from "../dialect.ts";
import type { RedisNode } from "../node/node.ts";
import type { BlankReport } from "../replies.ts";
import type { Gaps } from "./gaps.ts";
import type { Ballot } from "./ballot.ts";
import type { GrantFields, RedisGrant } from "./grant.ts";
import type { NodeSet } from "./node-set.ts";
import type { OwedReleases } from "./owed-releases.ts";
import type { Proposals } from "./proposals.ts";
import type { Rounds } from "./round.ts";
import type { StoreSettings } from "./store-settings.ts";

/** Context that all protocol steps share: one store's nodes, and how to send requests to them. */
export interface Quorum {
  readonly nodes: readonly RedisNode[];
  /** Majority: floor(N / 2) + 1. Not configurable. */
  readonly size: number;
  readonly options: StoreSettings;
  readonly dialect: Dialect;
  readonly rounds: Rounds;
  readonly clock: SteadyClock;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  readonly proposals: Proposals;
  readonly owed: OwedReleases;
  /** Set if clients of other libraries get a gap after each release. */
  readonly gaps: Gaps | undefined;
  /** Nodes that were sent no acquire for a grant: they need no release. */
  readonly skipped: WeakMap<RedisGrant, NodeSet>;
  /** Queue entries to give up together with a grant. */
  readonly places: WeakMap<RedisGrant, PlaceLeft>;
  /** Returns the fields that all grants of this TTL share. */
  fields(ttlMs: number): GrantFields;
  /** True if enough nodes are known to be admitted. Always true if admission is off. */
  isPrepared(): boolean;
  /** Called before an attempt if too few nodes are known to be admitted: tries to admit more. */
  prepare(): Promise<void>;
  /** Called when a node replies that it is not admitted. Returns the reason and the time left. */
  onBlank(index: number, report: BlankReport): Error;
  /** Called when these nodes have granted a lease. */
  onGranted(grant: RedisGrant): void;
  /** Called when a grant needed a raise round to agree on its fence. */
  onRaised(grant: RedisGrant): void;
  /** Returns the error if this set-up can never grant: the same server was given twice. */
  setupError(ballots: readonly Ballot[]): HoldfastError | undefined;
  /** Checks again whether that is still so. Bounded, never rejects. */
  recheck(): Promise<void>;
  /**
   * Returns these nodes without those whose server is also that of another of them:
   * a server has one vote.
   */
  distinct(votes: NodeSet): NodeSet;
}
