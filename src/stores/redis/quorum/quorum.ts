import type { HoldfastError } from "../../../core/errors.ts";
import type { Emitter } from "../../../core/events.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type { Scheduler } from "../../../core/scheduler.ts";
import type { Dialect, PlaceLeft } from "../dialect.ts";
import type { RedisNode } from "../node.ts";
import type { ResolvedStoreOptions } from "../options.ts";
import type { BlankReport } from "../replies.ts";
import type { Gaps } from "../waiting/gaps.ts";
import type { Ballot } from "./ballot.ts";
import type { GrantTerms, RedisGrant } from "./grant.ts";
import type { OwedReleases } from "./owed-releases.ts";
import type { Proposals } from "./proposals.ts";

/** What every step of the protocol works with: the nodes of one store, and how to speak to them. */
export interface Quorum {
  readonly nodes: readonly RedisNode[];
  /** A majority: floor(N / 2) + 1. It cannot be configured. */
  readonly size: number;
  readonly options: ResolvedStoreOptions;
  readonly dialect: Dialect;
  readonly clock: SteadyClock;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  readonly proposals: Proposals;
  readonly owed: OwedReleases;
  /** Undefined unless other libraries' clients are to get a gap after each release. */
  readonly gaps: Gaps | undefined;
  /** The nodes that were never asked for a grant, a bit for each: nothing has to be given back. */
  readonly spared: WeakMap<RedisGrant, number>;
  /** The places in the nodes' queues that are given up with a grant. */
  readonly places: WeakMap<RedisGrant, PlaceLeft>;
  /** What its grants of this TTL have in common. */
  terms(ttlMs: number): GrantTerms;
  /** Whether as many nodes are known to vote as are needed: without admission, always. */
  isPrepared(): boolean;
  /** Before an attempt, with admission: see to it that as many nodes vote as may. */
  prepare(): Promise<void>;
  /** A node said that it may not vote; returns that in words, with the time it still takes. */
  onBlank(index: number, report: BlankReport): Error;
  /** A lease begins to rest on these nodes. */
  onGranted(grant: RedisGrant): void;
  /** A grant that needed a second round, to agree on its fence. */
  onRaised(grant: RedisGrant): void;
  /** Why this set-up cannot grant at all, as far as is known: the same server given twice. */
  misfit(ballots: readonly Ballot[]): HoldfastError | undefined;
  /** Asks whether that is still so. Bounded, never rejects. */
  recheck(): Promise<void>;
}
