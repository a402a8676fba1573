import type { Emitter } from "../../../core/events.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import type { Scheduler } from "../../../core/time/scheduler.ts";
import type { Calls } from "../commands/operation-call.ts";
import type { PlaceLeft } from "../commands/operation.ts";
import type { RedisNode } from "../node/node.ts";
import type { BlankReport } from "../commands/operation.ts";
import type { DuplicateServers } from "./duplicate-servers.ts";
import type { Gaps } from "./gaps.ts";
import type { RedisGrant, SharedGrantFields } from "./grant.ts";
import type { NodeSet } from "./node-set.ts";
import type { OwedReleases } from "./owed-releases.ts";
import type { Proposals } from "./proposals.ts";
import type { Rounds } from "./round.ts";
import type { StoreSettings } from "./store-settings.ts";

/** Decides which nodes may vote. */
export interface Admissions {
  /** True if enough nodes are known to be admitted. Always true if admission is off. */
  readonly isPrepared: boolean;
  /** Called before an attempt if too few nodes are known to be admitted: tries to admit more. */
  prepare(): Promise<void>;
  /**
   * Called when a node replies that it is not admitted. Returns an error that says why it is not,
   * and when it may vote.
   */
  noticeBlank(index: number, report: BlankReport): Error;
}

/** Countdown of new nodes, which may not vote yet. */
export interface VoteCountdown {
  /**
   * Called when too few nodes may vote. Returns the time until enough of them may; undefined if
   * that is not known. Emits a warning, once per countdown.
   */
  leftMs(): number | undefined;
}

/** Receives a notification of each grant, to watch the server that the grant rests on. */
export interface GrantObserver {
  onGranted(ttlMs: number): void;
}

/** Context that all protocol steps share: one store's nodes, and how to send requests to them. */
export interface Quorum {
  readonly nodes: readonly RedisNode[];
  /** Majority: floor(N / 2) + 1. Not configurable. */
  readonly size: number;
  readonly options: StoreSettings;
  readonly calls: Calls;
  readonly rounds: Rounds;
  readonly clock: SteadyClock;
  readonly scheduler: Scheduler;
  readonly events: Emitter;
  readonly proposals: Proposals;
  readonly fields: SharedGrantFields;
  readonly owed: OwedReleases;
  readonly duplicates: DuplicateServers;
  readonly admissions: Admissions;
  readonly countdown: VoteCountdown;
  /**
   * Watches the only node of this quorum for failovers. Undefined with several nodes, because a
   * failover of one node then only removes its vote.
   */
  readonly grantObserver: GrantObserver | undefined;
  /**
   * Set if this manager leaves a lock free for a moment after each release, for clients of other
   * libraries.
   */
  readonly gaps: Gaps | undefined;
  /** Nodes that received no acquire for a grant: they need no release. */
  readonly skipped: WeakMap<RedisGrant, NodeSet>;
  /** Queue entries to remove when a grant is released. */
  readonly places: WeakMap<RedisGrant, PlaceLeft>;
}
