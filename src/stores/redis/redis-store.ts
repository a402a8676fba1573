import type { RedisConnection } from "../../clients/contract.ts";
import type { Finding } from "../../core/doctor.ts";
import { InvalidOptionError, type HoldfastError } from "../../core/errors.ts";
import type { LockEvents } from "../../core/events.ts";
import type {
  AcquireRequest,
  AttemptOutcome,
  ExtendOutcome,
  Grant,
  Inspection,
  NodeStatus,
  OpenStore,
  ProveOutcome,
  ReleaseOutcome,
  StoreContext,
} from "../../core/store.ts";
import { acknowledged } from "./acknowledged.ts";
import { acksWarning } from "./acks-warning.ts";
import { clusterDialect } from "./cluster-dialect.ts";
import { bySlot, refuseCrossSlot } from "./cross-slot.ts";
import { diagnose } from "./doctor/doctor.ts";
import { Survey } from "./doctor/survey.ts";
import { FailoverWatch } from "./failover-watch.ts";
import { fencedDialect } from "./fenced-dialect.ts";
import { lockKey } from "./lock-key.ts";
import { RedisNode } from "./node.ts";
import { nodeTimeoutMs, type ResolvedStoreOptions } from "./options.ts";
import { attemptInOrder, inOrder, type RaisingStore } from "./ordered-groups.ts";
import { plainDialect } from "./plain-dialect.ts";
import { Admission } from "./quorum/admission.ts";
import { quorumOf, type Ballot } from "./quorum/ballot.ts";
import { inspect } from "./quorum/inspect.ts";
import { OneStep } from "./quorum/one-step.ts";
import { OwedReleases } from "./quorum/owed-releases.ts";
import { Proposals } from "./quorum/proposals.ts";
import type { Quorum } from "./quorum/quorum.ts";
import { StandingGrants } from "./standing-grants.ts";

/** One Redis or N independent ones: the same protocol, with a quorum of one or of a majority. */
export class RedisStore implements OpenStore, RaisingStore {
  readonly #quorum: Quorum;
  readonly #oneStep: OneStep;
  readonly #admission: Admission;
  readonly #survey: Survey;
  readonly #failovers: FailoverWatch;
  readonly #options: ResolvedStoreOptions;
  readonly #cluster: boolean;
  readonly #standing: StandingGrants;
  #twins: HoldfastError | undefined;

  constructor(
    connections: readonly RedisConnection[],
    options: ResolvedStoreOptions,
    context: StoreContext,
    /** Put before the names of its nodes, where there are several stores. */
    place = "",
  ) {
    const { scheduler, events } = context;
    const { clock } = context.runtime;
    this.#options = options;
    this.#cluster = connections.some(({ topology }) => topology === "cluster");
    const fenced = this.#cluster ? clusterDialect : fencedDialect(options);
    const dialect = options.fencing ? fenced : plainDialect;
    const single = connections.length === 1;
    const nodes = connections.map((given, index) => {
      const name = single && place === "" ? "redis" : `${place}node-${index + 1}`;
      const { replicas } = options;
      const connection =
        replicas === undefined
          ? given
          : acknowledged(given, replicas, acksWarning(name, replicas.acks, events));
      return new RedisNode(name, connection, {
        clock,
        events,
        batching: dialect.batching,
        allowance: { factor: options.driftFactor, fixedMs: options.driftFixedMs },
        onIntroduced: (node) => this.#onIntroduced(node),
        onClockStep: (node, stepMs) => this.#standing.onClockStep(node, stepMs),
        onScriptMissing: (node) => this.#survey.look(node),
      });
    });
    const size = quorumOf(nodes.length);
    this.#failovers = new FailoverWatch({
      scheduler,
      look: (node) => this.#survey.look(node),
      holdsAny: () => this.#standing.any,
      onReplaced: (node, cause) => this.#standing.onReplaced(node, cause),
    });
    this.#survey = new Survey(
      () => nodes,
      scheduler,
      events,
      (node, info) => this.#failovers.observe(node, info),
    );
    this.#admission = new Admission({ nodes, size, options, clock, scheduler, events });
    this.#quorum = {
      nodes,
      size,
      options,
      dialect,
      clock,
      scheduler,
      events,
      proposals: new Proposals(clock),
      owed: new OwedReleases(scheduler),
      onBlank: (index, report) => {
        this.#survey.look(nodes[index]);
        return this.#admission.noticeBlank(index, report);
      },
      onRaised: ({ resources, fence }) => {
        if (fence !== undefined) {
          events.emit("fence-raised", { resources, label: undefined, fence });
        }
      },
      misfit: (ballots) => this.#twins ?? this.#sameRunId(ballots),
      prepare: () => this.#admission.prepare(),
    };
    this.#standing = new StandingGrants(context, this.#quorum);
    this.#oneStep = new OneStep(this.#quorum);
    this.#warnOfEven(nodes.length);
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    if (!this.#cluster) {
      const outcome = await this.#oneStep.attempt(request);
      if (outcome.kind === "granted") this.#watchFor(request.ttlMs);
      return outcome;
    }
    const slots = bySlot(request.resources, (resource) => this.#keyOf(resource));
    if (slots.length === 1) return await this.#oneStep.attempt(request);
    if (this.#options.crossSlot === "refuse") refuseCrossSlot(slots);
    const groups = slots.map((resources) => ({ store: this.#oneStep, resources }));
    return await attemptInOrder(groups, request, this.#quorum.clock);
  }

  async extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return await inOrder.extend(this.#oneStep, grant, ttlMs);
  }

  async prove(grant: Grant): Promise<ProveOutcome> {
    const [only, ...others] = this.#quorum.nodes;
    const error = others.length === 0 ? this.#failovers.doubtOf(only) : undefined;
    if (error !== undefined) {
      this.#survey.look(only);
      return { kind: "failed", error };
    }
    return await inOrder.prove(this.#oneStep, grant);
  }

  async release(grant: Grant): Promise<ReleaseOutcome> {
    return await inOrder.release(this.#oneStep, grant);
  }

  /** For locks over several stores: one fence for all of them. */
  async raise(grant: Grant, fence: bigint): Promise<Grant | undefined> {
    return await this.#oneStep.raise(grant, fence);
  }

  /** The nodes as they are known so far, without asking them. */
  get members(): readonly RedisNode[] {
    return this.#quorum.nodes;
  }

  async inspect(resource: string): Promise<Inspection> {
    return await inspect(this.#quorum, resource, this.#keyOf(resource));
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    const strict = this.#options.admission === "strict";
    if (strict) await this.#admission.look();
    else await inspect(this.#quorum, "", "holdfast:nobody");
    const nowMs = this.#quorum.clock.monotonicMs();
    return this.#quorum.nodes.map((node, index) => {
      const { kind, untilMs } = this.#admission.state(index);
      return {
        node: node.name,
        admission: strict ? kind : "off",
        quarantineLeftMs:
          strict && kind === "quarantined" && Number.isFinite(untilMs)
            ? Math.max(0, untilMs - nowMs)
            : undefined,
        runId: node.runId,
        version: node.version,
        lastFault: node.lastFault,
      };
    });
  }

  async doctor(ttlMs: number): Promise<readonly Finding[]> {
    return await diagnose(this.#quorum, ttlMs, () => this.nodes());
  }

  async close(): Promise<void> {
    this.#survey.close();
    this.#failovers.close();
    this.#admission.close();
    await this.#quorum.owed.close(nodeTimeoutMs(this.#options, this.#options.ttlMaxMs));
    await Promise.allSettled(
      this.#quorum.nodes.map(async ({ connection }) => await connection.close?.()),
    );
  }

  #keyOf(resource: string): string {
    return lockKey(this.#options.prefix, resource);
  }

  /** With several nodes the others notice: one that was replaced only loses its vote. */
  #watchFor(ttlMs: number): void {
    const [only, ...others] = this.#quorum.nodes;
    if (only !== undefined && others.length === 0) this.#failovers.pulse(only, ttlMs);
  }

  /** A server that votes twice makes a majority of a minority. */
  #onIntroduced(introduced: RedisNode): void {
    this.#survey.look(introduced);
    const { runId } = introduced;
    if (introduced.infoDenied) this.#quorum.events.emit("warning", infoDeniedWarning(introduced));
    if (runId === undefined) return;
    const twin = this.#quorum.nodes.find((node) => node !== introduced && node.runId === runId);
    if (twin !== undefined) this.#twins = twinsError(introduced.name, twin.name);
  }

  #sameRunId(ballots: readonly Ballot[]): HoldfastError | undefined {
    const seen = new Map<string, number>();
    for (const [index, { vote, runId }] of ballots.entries()) {
      if (vote !== "granted" || runId === undefined || runId === "-") continue;
      const { nodes } = this.#quorum;
      this.#survey.noticeRunId(nodes[index], runId);
      const twin = seen.get(runId);
      if (twin !== undefined) return twinsError(nodes[index]?.name, nodes[twin]?.name);
      seen.set(runId, index);
    }
    return undefined;
  }

  #warnOfEven(nodeCount: number): void {
    if (nodeCount % 2 === 1) return;
    const { events, scheduler, clock } = this.#quorum;
    // A moment later, so that whoever has just made the manager can listen first.
    scheduler.at(clock.monotonicMs(), false, () => {
      events.emit("warning", {
        what: `${nodeCount} nodes`,
        why:
          `a quorum of ${nodeCount} needs ${quorumOf(nodeCount)}: it survives no more failures ` +
          `than ${nodeCount - 1} nodes would, and two rivals can split it evenly`,
        remedy: "use an odd number of nodes",
      });
    });
  }
}

function infoDeniedWarning({ name }: RedisNode): LockEvents["warning"] {
  return {
    what: `${name}: this user may not run INFO`,
    why: "the same server given twice, its version and its restarts cannot be told",
    remedy: "allow it: ACL SETUSER <user> +info",
  };
}

function twinsError(one: string | undefined, other: string | undefined): HoldfastError {
  return new InvalidOptionError(
    "nodes",
    "different servers",
    `the same server twice, as ${other} and ${one}`,
  );
}
