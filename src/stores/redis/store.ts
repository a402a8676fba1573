import type { RedisConnection } from "../../clients/contract.ts";
import type { Finding } from "../../core/report/doctor.ts";
import { ForeignHolderError } from "../../core/errors.ts";
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
  TellExtended,
  Waiting,
} from "../../core/store.ts";
import { acknowledged } from "./failover/acknowledged.ts";
import { acksWarning } from "./failover/acks-warning.ts";
import { Batches } from "./batch.ts";
import { clusterDialect } from "./cluster-dialect.ts";
import { bySlot, refuseCrossSlot } from "./protocol/cross-slot.ts";
import { diagnose } from "./doctor/doctor.ts";
import type { ServerInfo } from "./node/server-info.ts";
import { Survey } from "./node/survey.ts";
import { FailoverWatch } from "./failover/failover-watch.ts";
import { fencedDialect } from "./fenced-dialect.ts";
import { lockKey } from "./protocol/lock-key.ts";
import { nodeStatuses } from "./admission/node-statuses.ts";
import { RedisNode, type NodeOptions } from "./node/node.ts";
import { attemptInOrder, inOrder, type RaisingStore } from "./protocol/ordered-groups.ts";
import { plainClusterDialect, plainDialect } from "./plain-dialect.ts";
import { Admission } from "./admission/admission.ts";
import { quorumOf } from "./protocol/ballot.ts";
import { breakOwners } from "./protocol/break.ts";
import { RedisGrant } from "./protocol/grant.ts";
import { inspect } from "./protocol/inspect.ts";
import { list } from "./protocol/list.ts";
import { Protocol } from "./protocol/protocol.ts";
import { OwedReleases } from "./protocol/owed-releases.ts";
import { Proposals } from "./protocol/proposals.ts";
import type { Quorum } from "./protocol/quorum.ts";
import { Rounds } from "./protocol/round.ts";
import { foreignIn } from "./protocol/refused-outcome.ts";
import { renewMany } from "./protocol/renew-many.ts";
import { evenWarning, infoDeniedWarning } from "./warnings.ts";
import { ServerClocks } from "./node/server-clocks.ts";
import { StampWatch } from "./node/stamp-watch.ts";
import { HeldGrants } from "./failover/held-grants.ts";
import { SharedGrantFields } from "./protocol/shared-grant-fields.ts";
import { DuplicateServers } from "./protocol/duplicate-servers.ts";
import { Gaps } from "./protocol/gaps.ts";
import { RedisWaiting } from "./queue/redis-waiting.ts";
import { WakeUps } from "./queue/wake-ups.ts";
import { nodeTimeoutMs, type StoreSettings } from "./protocol/store-settings.ts";

/** TTL of an ordinary lease. Its node timeout decides when a node counts as silent. */
const usualTtlMs = 10_000;

/** Store on one Redis or on N independent ones. Both use the same quorum protocol. */
export class RedisStore implements OpenStore, RaisingStore {
  readonly #quorum: Quorum;
  readonly #protocol: Protocol;
  readonly #admission: Admission;
  readonly #survey: Survey;
  readonly #wakeUps: WakeUps;
  readonly #failovers: FailoverWatch;
  readonly #options: StoreSettings;
  readonly #cluster: boolean;
  readonly #held: HeldGrants;
  readonly #duplicates: DuplicateServers;

  constructor(
    connections: readonly RedisConnection[],
    options: StoreSettings,
    context: StoreContext,
    /** Prefix of the nodes' names, if there are several stores. */
    place = "",
  ) {
    const { scheduler, events } = context;
    const { clock } = context.runtime;
    this.#options = options;
    this.#cluster = connections.some(({ topology }) => topology === "cluster");
    const fenced = this.#cluster ? clusterDialect : fencedDialect(options);
    const plain = this.#cluster ? plainClusterDialect : plainDialect;
    const dialect = options.fencing ? fenced : plain;
    const single = connections.length === 1;
    const batches = dialect.batching && new Batches(dialect.batching);
    const clocks = new ServerClocks(connections.length, scheduler, events);
    const stamps = new StampWatch(events, clocks, options.admission);
    const nodes = connections.map((given, index) => {
      const name = single && place === "" ? "redis" : `${place}node-${index + 1}`;
      return this.#nodeOf(name, given, context, { batches, stamps });
    });
    const size = quorumOf(nodes.length);
    const fields = new SharedGrantFields(options);
    const proposals = new Proposals(clock, clocks);
    const rounds = new Rounds(nodes, size, scheduler);
    const common = { nodes, size, rounds, options, clock, scheduler, events, proposals };
    this.#failovers = new FailoverWatch({
      scheduler,
      look: (node) => this.#survey.look(node),
      holdsAny: () => this.#held.any,
      onReplaced: (node, cause) => this.#held.onReplaced(node, cause),
    });
    this.#survey = new Survey(
      () => nodes,
      scheduler,
      events,
      (node, info) => this.#onInfo(node, info),
    );
    const timeoutMs = nodeTimeoutMs(options, usualTtlMs);
    this.#duplicates = new DuplicateServers({ nodes, scheduler, timeoutMs, survey: this.#survey });
    this.#admission = new Admission(common);
    this.#quorum = {
      ...common,
      dialect,
      owed: new OwedReleases(scheduler),
      gaps: options.foreignGapMs > 0 ? new Gaps(clock, options.foreignGapMs) : undefined,
      skipped: new WeakMap(),
      places: new WeakMap(),
      onBlank: (index, report) => {
        this.#survey.look(nodes[index]);
        return this.#admission.noticeBlank(index, report);
      },
      onRaised: ({ resources, fence }) => {
        if (fence !== undefined) {
          events.emit("fence-raised", { resources, label: undefined, fence });
        }
      },
      onGranted: ({ ttlMs }) => this.#watchFor(ttlMs),
      setupError: (ballots) => this.#duplicates.setupError(ballots),
      recheck: () => this.#duplicates.recheck(),
      distinct: (votes) => this.#duplicates.distinct(votes),
      fields: (ttlMs) => fields.of(this.#quorum, ttlMs),
      isPrepared: () => this.#admission.isPrepared,
      prepare: () => this.#admission.prepare(),
    };
    this.#held = new HeldGrants(context, this.#quorum);
    this.#protocol = new Protocol(this.#quorum);
    const base = context.runtime.random.uniqueBase();
    this.#wakeUps = new WakeUps({ nodes, size, clock, scheduler, events, base });
    this.#warnOfEven(nodes.length);
  }

  attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    return this.#cluster ? this.#attemptBySlot(request) : this.#protocol.attempt(request);
  }

  async #attemptBySlot(request: AcquireRequest): Promise<AttemptOutcome> {
    const slots = bySlot(request.resources, (resource) => this.#keyOf(resource));
    if (slots.length === 1) return await this.#protocol.attempt(request);
    if (this.#options.crossSlot === "refuse") refuseCrossSlot(slots);
    const groups = slots.map((resources) => ({ store: this.#protocol, resources }));
    return await attemptInOrder(groups, request, this.#quorum.clock);
  }

  /** Returns undefined if one script cannot lock them: a queue over slots has no order. */
  waiting(resources: readonly string[]): Waiting | undefined {
    if (this.#cluster) {
      if (!this.#options.fencing) return undefined;
      if (bySlot(resources, (resource) => this.#keyOf(resource)).length > 1) return undefined;
    }
    return new RedisWaiting(this.#quorum, this.#protocol, this.#wakeUps, resources);
  }

  gapRemainingMs(resources: readonly string[]): number {
    return this.#quorum.gaps?.leftMs(resources) ?? 0;
  }

  extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return inOrder.extend(this.#protocol, grant, ttlMs);
  }

  extendMany(grants: readonly Grant[], ttlMs: number, onOutcome: TellExtended): void {
    const alone = (grant: Grant): Promise<ExtendOutcome> => this.extend(grant, ttlMs);
    renewMany(this.#quorum, { grants, ttlMs, alone }, onOutcome);
  }

  prove(grant: Grant): Promise<ProveOutcome> {
    const [only, ...others] = this.#quorum.nodes;
    const error = others.length === 0 ? this.#failovers.doubtOf(only) : undefined;
    if (error === undefined) return inOrder.prove(this.#protocol, grant);
    this.#survey.look(only);
    return Promise.resolve({ kind: "failed", error });
  }

  /** False if it is unknown whether the only server still has the grant. */
  passOn(grant: Grant): boolean {
    const [only, ...others] = this.#quorum.nodes;
    if (others.length === 0 && this.#failovers.doubtOf(only) !== undefined) return false;
    return grant instanceof RedisGrant && grant.passOn();
  }

  release(grant: Grant): Promise<ReleaseOutcome> {
    return inOrder.release(this.#protocol, grant);
  }

  /** Raises the fence of a grant: locks over several stores have one fence. */
  async raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    return await this.#protocol.raise(grant, fence);
  }

  /** Nodes of the store. Sends no request. */
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

  #nodeOf(
    name: string,
    given: RedisConnection,
    { runtime, events }: StoreContext,
    shared: Pick<NodeOptions, "batches" | "stamps">,
  ): RedisNode {
    const { replicas, driftFactor, driftFixedMs, ttlMaxMs } = this.#options;
    const connection =
      replicas === undefined
        ? given
        : acknowledged(given, replicas, acksWarning(name, replicas.acks, events));
    return new RedisNode(name, connection, {
      clock: runtime.clock,
      events,
      ...shared,
      silentMsMax: nodeTimeoutMs(this.#options, Math.min(ttlMaxMs, usualTtlMs)),
      allowance: { factor: driftFactor, fixedMs: driftFixedMs },
      onIdentified: (node) => this.#onIdentified(node),
      onClockStep: (node, stepMs) => this.#held.onClockStep(node, stepMs),
      onScriptMissing: (node) => this.#survey.look(node),
    });
  }

  #keyOf(resource: string): string {
    return lockKey(this.#options.prefix, resource);
  }

  /** Watches a single node for failovers. One of several nodes only loses its vote. */
  #watchFor(ttlMs: number): void {
    const { nodes } = this.#quorum;
    const only = nodes.length === 1 ? nodes[0] : undefined;
    if (only !== undefined) this.#failovers.pulse(only, ttlMs);
  }

  #onInfo(node: RedisNode, info: ServerInfo): void {
    this.#failovers.observe(node, info);
    this.#duplicates.observe(node, info.runId);
  }

  #onIdentified(node: RedisNode): void {
    this.#failovers.met(node);
    this.#survey.look(node);
    this.#duplicates.observe(node, node.runId);
    if (node.infoDenied) this.#quorum.events.emit("warning", infoDeniedWarning(node));
  }

  #warnOfEven(nodeCount: number): void {
    if (nodeCount % 2 === 1) return;
    const { events, scheduler, clock } = this.#quorum;
    // A moment later, so that the creator of the manager can add a listener first.
    scheduler.at(clock.monotonicMs(), false, () => events.emit("warning", evenWarning(nodeCount)));
  }
}
