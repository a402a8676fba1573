import type { Finding } from "../../../core/report/doctor.ts";
import { ClosedError } from "../../../core/errors.ts";
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
  OnExtended,
  Waiting,
} from "../../../core/store.ts";
import type { SteadyClock } from "../../../core/ports.ts";
import { lockKey } from "../commands/keys.ts";
import type { RedisNode } from "../node/node.ts";
import { attemptInOrder, inOrder, type RaisingStore } from "../protocol/ordered-groups.ts";
import type { LayoutGate, Refusal } from "./layout-gate.ts";
import type { Rendezvous } from "./rendezvous.ts";

/** The store of one group. */
export interface GroupStore extends Required<Omit<OpenStore, "mark" | "raiseMark">>, RaisingStore {
  /** Nodes of the group. Reading this property sends no request. */
  readonly members: readonly RedisNode[];
}

export interface GroupsContext {
  /** One store for each group, in the order that all clients share. */
  readonly stores: readonly GroupStore[];
  readonly rendezvous: Rendezvous;
  readonly gate: LayoutGate;
  readonly prefix: string;
  readonly clock: SteadyClock;
}

/** Several independent quorums. Each resource belongs to exactly one of them. */
export class GroupsStore implements OpenStore {
  readonly #context: GroupsContext;

  constructor(context: GroupsContext) {
    this.#context = context;
  }

  async attempt(request: AcquireRequest): Promise<AttemptOutcome> {
    return await this.#attempt(request, undefined);
  }

  async #attempt(request: AcquireRequest, waiting: Waiting | undefined): Promise<AttemptOutcome> {
    const { gate, clock } = this.#context;
    const homes = this.#homesOf(request.resources);
    for (const [home, resources] of homes) {
      if (gate.isOpen(home)) continue;
      const refusal = await gate.pass(home, resources);
      if (refusal !== undefined) return { kind: "failed", ...refusal, cleanup: undefined };
      if (request.cancellation.cancelled) return cancelled(request);
    }
    const groups = [...homes].map(([home, resources]) => {
      return { store: this.#store(home), resources };
    });
    const [only] = groups;
    const outcome =
      groups.length === 1 && only !== undefined
        ? await (waiting ?? only.store).attempt(request)
        : await attemptInOrder(groups, request, clock);
    if (outcome.kind !== "failed" || outcome.retryable) return outcome;
    return await this.#explained(outcome, homes.keys());
  }

  /**
   * Returns undefined for resources of several groups: the queues of several groups share no order.
   */
  waiting(resources: readonly string[]): Waiting | undefined {
    const homes = this.#homesOf(resources);
    const [home] = homes.keys();
    if (homes.size !== 1 || home === undefined) return undefined;
    const waiting = this.#store(home).waiting(resources);
    if (waiting === undefined) return undefined;
    return {
      attempt: (request) => this.#attempt(request, waiting),
      listen: (listener) => waiting.listen(listener),
      leave: () => waiting.leave(),
    };
  }

  gapRemainingMs(resources: readonly string[]): number {
    return Math.max(...this.#context.stores.map((store) => store.gapRemainingMs(resources)));
  }

  async extend(grant: Grant, ttlMs: number): Promise<ExtendOutcome> {
    return await inOrder.extend(this.#storeOf(grant), grant, ttlMs);
  }

  /** Extends the grants of each group together. */
  extendMany(grants: readonly Grant[], ttlMs: number, onOutcome: OnExtended): void {
    const byStore = new Map<GroupStore, { some: Grant[]; places: number[] }>();
    for (const [place, grant] of grants.entries()) {
      const store = this.#storeOf(grant);
      const own = byStore.get(store) ?? { some: [], places: [] };
      own.some.push(grant);
      own.places.push(place);
      byStore.set(store, own);
    }
    for (const [store, { some, places }] of byStore) {
      store.extendMany(some, ttlMs, (at, outcome, moment) =>
        onOutcome(places[at] ?? -1, outcome, moment),
      );
    }
  }

  async prove(grant: Grant): Promise<ProveOutcome> {
    return await inOrder.prove(this.#storeOf(grant), grant);
  }

  handOver(grant: Grant): boolean {
    return this.#storeOf(grant).handOver(grant);
  }

  async release(grant: Grant): Promise<ReleaseOutcome> {
    return await inOrder.release(this.#storeOf(grant), grant);
  }

  async inspect(resource: string): Promise<Inspection> {
    return await this.#store(this.#homeOf(resource)).inspect(resource);
  }

  async list(): Promise<readonly Inspection[]> {
    const all = this.#context.stores.map(async (store, home) => {
      // Skips locks in a group that had the resource in an older layout (set of groups) only.
      return (await store.list()).filter(({ resource }) => this.#homeOf(resource) === home);
    });
    return (await Promise.all(all)).flat();
  }

  async break(resource: string, owners: readonly string[]): Promise<BreakAnswer> {
    return await this.#store(this.#homeOf(resource)).break(resource, owners);
  }

  async nodes(): Promise<readonly NodeStatus[]> {
    const { stores, gate } = this.#context;
    const all = stores.map(async (store, home) => {
      // `pass` always sends a request to the nodes. If a node did not receive before that the
      // layout is in force, it does now.
      const refusal = await gate.pass(home);
      return refusal === undefined ? await store.nodes() : closedNodes(store, refusal.error);
    });
    return (await Promise.all(all)).flat();
  }

  async doctor(ttlMs: number): Promise<readonly Finding[]> {
    const { stores, gate } = this.#context;
    const all = stores.map(async (store, home) => {
      const refusal = await gate.pass(home);
      // Skips a group on whose nodes the layout is not in force yet: the doctor of that group might
      // write a record to a node that must not have one yet.
      return refusal === undefined ? await store.doctor(ttlMs) : [closedFinding(refusal)];
    });
    return (await Promise.all(all)).flat();
  }

  async close(): Promise<void> {
    const { stores } = this.#context;
    await Promise.all(stores.map((store) => store.close()));
  }

  /**
   * Returns a better reason for a failed attempt: that the nodes now belong to another layout.
   * Returns `outcome` if they do not.
   */
  async #explained(
    outcome: Extract<AttemptOutcome, { kind: "failed" }>,
    homes: Iterable<number>,
  ): Promise<AttemptOutcome> {
    const { gate } = this.#context;
    for (const home of homes) {
      gate.forget(home);
      const refusal = await gate.pass(home);
      if (refusal !== undefined) return { ...outcome, ...refusal };
    }
    return outcome;
  }

  /**
   * Returns the resources of each group. Groups and resources are in the order that all clients
   * share.
   */
  #homesOf(resources: readonly string[]): Map<number, readonly string[]> {
    // Rejects forbidden names here, before any group is sent a request.
    for (const resource of resources) lockKey(this.#context.prefix, resource);
    const [only] = resources;
    if (resources.length === 1 && only !== undefined) {
      return new Map([[this.#homeOf(only), resources]]);
    }
    const homes = new Map<number, string[]>();
    for (const resource of resources) {
      const home = this.#homeOf(resource);
      const found = homes.get(home);
      if (found === undefined) homes.set(home, [resource]);
      else found.push(resource);
    }
    return new Map([...homes].sort(([a], [b]) => a - b));
  }

  #homeOf(resource: string): number {
    const { rendezvous, prefix } = this.#context;
    // The key decides, not the name: clients that make the same key must use the same group.
    return rendezvous.homeOf(prefix + resource);
  }

  #storeOf({ resources }: Grant): GroupStore {
    return this.#store(this.#homeOf(resources[0] ?? ""));
  }

  #store(home: number): GroupStore {
    const store = this.#context.stores[home];
    if (store === undefined) throw new RangeError(`there is no group ${home}`);
    return store;
  }
}

function cancelled({ resources }: AcquireRequest): AttemptOutcome {
  // No request was sent. This error only ends the attempt: the caller reports its own reason.
  const error = new ClosedError(resources);
  return { kind: "failed", error, retryable: false, cleanup: undefined };
}

function closedFinding({ error, retryable }: Refusal): Finding {
  return {
    level: "error",
    code: "group-closed",
    what: error.message,
    why: "no resource of this group can be locked before a quorum of it is open for this layout",
    remedy: retryable ? "wait, or bring back its servers" : "do as the message says",
  };
}

function closedNodes(store: GroupStore, error: Error): NodeStatus[] {
  return store.members.map(({ name, runId, version, health }) => {
    return {
      node: name,
      admission: "unknown",
      quarantineRemainingMs: undefined,
      runId,
      version,
      lastFault: health.lastFault ?? error,
    };
  });
}
