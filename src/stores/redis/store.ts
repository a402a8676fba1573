import type { RedisConnection } from "../../clients/contract.ts";
import { ForeignHolderError } from "../../core/errors.ts";
import type { Finding } from "../../core/report/doctor.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  BreakAnswer,
  ExtendOutcome,
  Grant,
  Inspection,
  NodeStatus,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  StoreContext,
  OnExtended,
  Waiting,
} from "../../core/store.ts";
import { Admission } from "./admission/admission.ts";
import { Countdown } from "./admission/countdown.ts";
import { nodeStatuses } from "./admission/node-statuses.ts";
import {
  clusterMode,
  fencedMode,
  plainClusterMode,
  plainMode,
  type Mode,
} from "./commands/modes.ts";
import { Calls, Lists } from "./commands/operation-call.ts";
import { diagnose } from "./doctor/doctor.ts";
import { acknowledged, acksWarning } from "./failover/acknowledged.ts";
import { FailoverWatch } from "./failover/failover-watch.ts";
import { HeldGrants } from "./failover/held-grants.ts";
import { MixedAdmission } from "./node/mixed-admission.ts";
import { nodeNames } from "./node/node-names.ts";
import { RedisNode } from "./node/node.ts";
import { ServerClocks } from "./node/server-clocks.ts";
import { Survey } from "./node/survey.ts";
import { quorumOf } from "./protocol/ballot.ts";
import { breakOwners } from "./protocol/break.ts";
import { DuplicateServers } from "./protocol/duplicate-servers.ts";
import { Gaps } from "./protocol/gaps.ts";
import { RedisGrant, SharedGrantFields } from "./protocol/grant.ts";
import { inspect } from "./protocol/inspect.ts";
import { list } from "./protocol/list.ts";
import { lockKey } from "./commands/keys.ts";
import { nodeTimeoutMs, type StoreSettings } from "./protocol/store-settings.ts";
import { inOrder, type RaisingStore } from "./protocol/ordered-groups.ts";
import { OwedReleases } from "./protocol/owed-releases.ts";
import { Proposals } from "./protocol/proposals.ts";
import { Protocol } from "./protocol/protocol.ts";
import type { Quorum } from "./protocol/quorum.ts";
import { foreignIn } from "./protocol/refused-outcome.ts";
import { renewMany } from "./protocol/renew-many.ts";
import { Rounds } from "./protocol/round.ts";
import { SlotOrder } from "./protocol/slot-order.ts";
import { RedisWaiting } from "./queue/redis-waiting.ts";
import { WakeUps } from "./queue/wake-ups.ts";

/** TTL of an ordinary lease. The node timeout for this TTL decides when a node counts as silent. */
const usualTtlMs = 10_000;

/** Store on one Redis or on N independent ones. Both use the same quorum protocol. */
export class RedisStore implements OpenStore, RaisingStore {
  readonly #options: StoreSettings;
  readonly #survey: Survey;
  readonly #admission: Admission;
  readonly #failovers: FailoverWatch;
  readonly #quorum: Quorum;
  readonly #protocol: Protocol;
  readonly #slots: SlotOrder | undefined;
  /** Runs the steps of the protocol: `#protocol` or, in a Cluster, `#slots`. */
  readonly #steps: RaisingStore;
  readonly #wakeUps: WakeUps;

  /** `place` is the prefix of the nodes' names. It is empty unless there are several stores. */
  constructor(
    connections: readonly RedisConnection[],
    options: StoreSettings,
    context: StoreContext,
    place = "",
  ) {
    const { scheduler, events } = context;
    const { clock, random } = context.runtime;
    this.#options = options;
    const cluster = connections.some(({ topology }) => topology === "cluster");
    const mode = dialectOf(options, cluster);
    const clocks = new ServerClocks(connections.length, scheduler, events);
    const nodes = nodesOf(connections, { options, context, mode, clocks, place });
    const size = quorumOf(nodes.length);
    const survey = new Survey(nodes, scheduler, events);
    const rounds = new Rounds(nodes, size, scheduler);
    const proposals = new Proposals(clock, clocks);
    const timeoutMs = nodeTimeoutMs(options, usualTtlMs);
    const duplicates = new DuplicateServers({ nodes, scheduler, timeoutMs, survey });
    const fields = new SharedGrantFields(options);
    const common = { nodes, size, options, rounds, clock, scheduler, events, proposals };
    this.#admission = new Admission({ ...common, survey });
    const held = new HeldGrants(context, { nodes, size, fields });
    const only = nodes.length === 1 ? nodes[0] : undefined;
    this.#failovers = new FailoverWatch({ scheduler, survey, held, only });
    for (const node of nodes) {
      for (const each of [this.#failovers, survey, duplicates, held]) node.observe(each);
    }
    this.#survey = survey;
    this.#quorum = {
      ...common,
      calls: new Calls(mode),
      fields,
      duplicates,
      owed: new OwedReleases(scheduler),
      admissions: this.#admission,
      countdown: new Countdown(common, this.#admission),
      grantObserver: only === undefined ? undefined : this.#failovers,
      gaps: options.foreignGapMs > 0 ? new Gaps(clock, options.foreignGapMs) : undefined,
      skipped: new WeakMap(),
      places: new WeakMap(),
    };
    this.#protocol = new Protocol(this.#quorum);
    this.#slots = cluster ? new SlotOrder(this.#protocol, options, clock) : undefined;
    this.#steps = this.#slots ?? this.#protocol;
    const base = random.uniqueBase();
    this.#wakeUps = new WakeUps({ nodes, size, clock, scheduler, events, base });
    warnOfEven(nodes.length, context);
  }

  attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    return this.#steps.attempt(request);
  }

  /**
   * Returns undefined if these resources have no common queue: they are in several slots of a
   * Cluster, or in a Cluster without fences.
   */
  waiting(resources: readonly string[]): Waiting | undefined {
    if (this.#slots !== undefined) {
      if (!this.#options.fencing || this.#slots.bySlot(resources).length > 1) return undefined;
    }
    return new RedisWaiting(this.#quorum, this.#protocol, this.#wakeUps, resources);
  }

  gapRemainingMs(resources: readonly string[]): number {
    return this.#quorum.gaps?.leftMs(resources) ?? 0;
  }

  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return this.#steps.extend(grant, ttlMs);
  }

  extendMany(grants: readonly Grant[], ttlMs: number, onOutcome: OnExtended): void {
    // Extends one grant, which may have parts in several slots.
    const alone = (grant: Grant): Promise<ExtendOutcome> => {
      return inOrder.extend(this.#steps, grant, ttlMs);
    };
    renewMany(this.#quorum, { grants, ttlMs, alone }, onOutcome);
  }

  prove(grant: Grant): Promise<ProveOutcome> {
    const [only, ...others] = this.#quorum.nodes;
    const error = others.length === 0 ? this.#failovers.doubtOf(only) : undefined;
    if (error === undefined) return this.#steps.prove(grant);
    this.#survey.look(only);
    return Promise.resolve({ kind: "failed", error });
  }

  /**
   * Turns the grant into one for the next holder in this manager. False if it is unknown whether
   * the only server still has the grant.
   */
  handOver(grant: Grant): boolean {
    const [only, ...others] = this.#quorum.nodes;
    if (others.length === 0 && this.#failovers.doubtOf(only) !== undefined) return false;
    return grant instanceof RedisGrant && grant.handOver();
  }

  release(grant: Grant): Promise<ReleaseOutcome> {
    return this.#steps.release(grant);
  }

  /**
   * Updates the stored fence of a grant to the greater `fence`: a lock over several stores has one
   * fence.
   */
  async raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    return await this.#protocol.raise(grant, fence);
  }

  /** Nodes of the store. Reading this property sends no request. */
  get members(): readonly RedisNode[] {
    return this.#quorum.nodes;
  }

  async inspect(resource: string): Promise<Inspection> {
    const seen = await inspect(this.#quorum, resource, this.#keyOf(resource));
    const { nodes, size } = this.#quorum;
    const wrong = seen.nodes.filter(({ cause }) => cause instanceof ForeignHolderError);
    const error = wrong.length > nodes.length - size ? foreignIn(wrong, [resource]) : undefined;
    if (error !== undefined) throw error;
    return seen;
  }

  async list(): Promise<readonly Inspection[]> {
    return await list(this.#quorum);
  }

  async break(resource: string, owners: readonly string[]): Promise<BreakAnswer> {
    return await breakOwners(this.#quorum, resource, this.#keyOf(resource), owners);
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    return await nodeStatuses(this.#quorum, this.#admission);
  }

  async doctor(ttlMs: number): Promise<readonly Finding[]> {
    return await diagnose(this.#quorum, ttlMs, () => this.nodes());
  }

  async close(): Promise<void> {
    this.#survey.close();
    this.#failovers.close();
    this.#admission.close();
    const timeoutMs = nodeTimeoutMs(this.#options, this.#options.ttlMaxMs);
    await Promise.all([this.#wakeUps.close(timeoutMs), this.#quorum.owed.close(timeoutMs)]);
  }

  #keyOf(resource: string): string {
    return lockKey(this.#options.prefix, resource);
  }
}

function dialectOf(options: StoreSettings, cluster: boolean): Mode {
  if (cluster) return options.fencing ? clusterMode : plainClusterMode;
  return options.fencing ? fencedMode(options) : plainMode;
}

interface NodesContext {
  readonly options: StoreSettings;
  readonly context: StoreContext;
  readonly mode: Mode;
  readonly clocks: ServerClocks;
  readonly place: string;
}

function nodesOf(
  connections: readonly RedisConnection[],
  { options, context, mode, clocks, place }: NodesContext,
): readonly RedisNode[] {
  const { replicas, driftFactor, driftFixedMs, ttlMaxMs, admission } = options;
  const { events, runtime } = context;
  const shared = {
    clock: runtime.clock,
    events,
    lists: mode.hasLists ? new Lists(mode) : undefined,
    clocks,
    mixedAdmission: admission === "off" ? new MixedAdmission(events) : undefined,
    silentMsMax: nodeTimeoutMs(options, Math.min(ttlMaxMs, usualTtlMs)),
    allowance: { factor: driftFactor, fixedMs: driftFixedMs },
  };
  const names = nodeNames(connections, place);
  return connections.map((given, index) => {
    const name = names[index] ?? "";
    const connection =
      replicas === undefined
        ? given
        : acknowledged(given, replicas, acksWarning(name, replicas.acks, events));
    return new RedisNode(name, connection, shared);
  });
}

function warnOfEven(nodeCount: number, { events, scheduler }: StoreContext): void {
  if (nodeCount % 2 === 1) return;
  const warning: Finding = {
    level: "warning",
    code: "even-nodes",
    what: `${nodeCount} nodes`,
    why:
      `a quorum of ${nodeCount} needs ${quorumOf(nodeCount)}: it survives no more failures ` +
      `than ${nodeCount - 1} nodes would, and two rivals can split it evenly`,
    remedy: "use an odd number of nodes",
  };
  // The warning is emitted a moment later, so that the creator of the manager can add a listener
  // first.
  scheduler.at(scheduler.clock.monotonicMs(), false, () => events.emit("warning", warning));
}
